//! `virtbench study predictions`

use std::path::PathBuf;

use clap::Args;

use super::folder::FolderArgs;
use super::predict::MethodArg;
use super::vm::VmArgs;

/// `virtbench study predictions`
#[derive(Debug, Args)]
#[command(after_help = "\
Every case is profiled natively, predicted by what pieces of work cost in the VM (`virtbench costs`), and only \
then run there. Trials are written to the run folder as they are made; after a kill or a power cut, --resume with the run \
folder goes on with the missing ones.

A case in the file, whose first line may say set = 'tuning' or set = 'held-out':
  [[case]]
  name = 'sqlite'
  command = ['sqlite3', 'app.db', '.read transactions.sql']
  metric = 'elapsed'
  workers = 1
  prepare = 'sqlite3 app.db < schema.sql'

Examples:
  virtbench study predictions --cases docs/data/predictions.toml --out predictions
  virtbench study predictions --cases docs/data/predictions.toml --out predictions --only sqlite --trials 5
  virtbench study predictions --resume --out predictions
  virtbench study predictions --again --method queueing --out predictions")]
pub struct PredictionsArgs {
    /// The applications
    #[arg(long, value_name = "FILE", required_unless_present_any = ["resume", "again"])]
    pub cases: Option<PathBuf>,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
    /// How often each is tried
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub trials: u32,
    /// How often each is run in a trial, on either side; the run in the middle counts. One more comes before it natively,
    /// to warm up and to count what it asks the kernel for
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Only these cases; may be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// What work costs, as `virtbench costs --out` wrote it [default: it is measured first]
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// How to predict
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// Predict again from the profiles and costs of the run in --out, by another --method or a changed model, and run
    /// nothing: the conclusion is printed, and the folder is left as it is
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub again: bool,
    /// Virtual processors of the VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
}
