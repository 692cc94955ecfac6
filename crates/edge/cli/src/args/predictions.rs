//! `virtbench study predictions`

use std::path::PathBuf;

use clap::Args;

use super::predict::MethodArg;
use super::there::ThereArgs;

/// `virtbench study predictions`
#[derive(Debug, Args)]
#[command(after_help = "\
Every case is profiled natively, predicted by what pieces of work cost in the VM (`virtbench costs`), and only \
then run there. A trial that is in the run folder is not repeated, so that a run can be gone on with.

A case in the file:
  [[case]]
  name = 'sqlite'
  command = ['sqlite3', 'app.db', '.read transactions.sql']
  metric = 'elapsed'
  workers = 1
  prepare = 'sqlite3 app.db < schema.sql'

Examples:
  virtbench study predictions --cases docs/data/predictions.toml --out predictions
  virtbench study predictions --cases docs/data/predictions.toml --out predictions --only sqlite --trials 5")]
pub struct PredictionsArgs {
    /// The applications
    #[arg(long, value_name = "FILE")]
    pub cases: PathBuf,
    /// Run folder: costs, trials, page
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
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
    /// What work costs [default: DIR/costs.json, measured if it is not there]
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// How to predict
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// Predict again from the kept profiles, with the costs at hand, and run nothing
    #[arg(long)]
    pub again: bool,
    /// Virtual processors of the VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// The VM
    #[command(flatten)]
    pub there: ThereArgs,
}
