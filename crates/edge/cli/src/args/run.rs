//! `virtbench run`

use std::path::PathBuf;

use clap::Args;

/// `virtbench run`
#[derive(Debug, Args)]
#[command(after_help = "\
A study as a file has its name and its options, as `virtbench help study NAME` lists them. An option that may be repeated
has a list, one without a value is true:

  study = \"compare\"
  environment = [\"metal=ssh://root@metal/srv\", \"vm=ssh://root@vm/srv\"]
  grid = \"quick\"
  size = \"4GiB\"
  repetitions = 5

--dry-run prints the study as such a file, also of a run folder, and how long it will take.

Examples:
  virtbench run nightly.toml --out tonight
  virtbench run nightly.toml --dry-run
  virtbench run virtbench-native-vs-vm-2026-11-22 --dry-run > again.toml")]
pub struct RunFileArgs {
    /// Study as a file, or the folder of a run whose study is to be run again
    #[arg(value_name = "FILE|DIR")]
    pub study: PathBuf,
    /// Print what would be run, as a file, and for how long; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run folder [default: the one in the file, else virtbench-STUDY-DATE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the missing points of the run in --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    pub json: bool,
}
