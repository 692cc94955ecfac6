//! Where the run of a study goes.

use std::path::PathBuf;

use clap::Args;

/// Where the run of a study goes, and what is printed of it.
#[derive(Debug, Clone, Args)]
pub struct FolderArgs {
    /// Run folder [default: virtbench-STUDY-DATE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with what is missing of the run in --out, with the options it was started with
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    pub json: bool,
}
