//! `virtbench compare`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::repeat::share;

/// When the comparison of two runs fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Something is worse by more than the margin
    Regression,
}

/// `virtbench compare`
#[derive(Debug, Args)]
#[command(after_help = "\
Points that both runs measured in an environment of the same name are compared: throughput, mean latency and the 99th \
percentile, after as a multiple of before. What differs between version, host and guest is named first.

Each verdict (better, worse, equivalent within the margin, undecided) is by itself wrong with a probability of at most \
5 %. --fail-on regression allows for how much is looked at: all that it fails on together is false in at most 5 % of \
comparisons. Repetitions of two runs have no counterparts, so they are pooled; runs that were not measured in turn also \
show what else has changed on the host, and that is said.

Examples:
  virtbench compare virtbench-native-vs-vm-monday virtbench-native-vs-vm-friday
  virtbench compare main/run branch/run --fail-on regression --markdown > comment.md
  virtbench compare before after --margin 10% --html change.html --json | jq .environments[0].overall")]
pub struct CompareRunsArgs {
    /// Run folder from before the change
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// Run folder from after it
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// How much more or less counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// End with exit code 9 if it got worse
    #[arg(long, value_enum)]
    pub fail_on: Option<FailOn>,
    /// Write a page with figures here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print a table in Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
