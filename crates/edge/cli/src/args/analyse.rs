//! `virtbench analyse`

use std::path::PathBuf;

use clap::Args;

use super::repeat::share;

/// `virtbench analyse`
#[derive(Debug, Args)]
#[command(after_help = "\
A table is CSV with the columns configuration, block, read_percent, random_percent, iops, and where they \
are known repetition, cpu_percent and response_ms; lines with # are comments. results.csv of a run is one. A table of an application has columns such as users, \
transactions_per_second, cycles_per_transaction, cycles_per_instruction and instructions_per_transaction \
instead: each configuration is compared with the first, and why a transaction costs more is worked out. A table of \
tiles has the columns tile, member, value and reference, and where they are known tiles and held: it is scored as VMmark \
is, and the most tiles that fit are named.

Two configurations differ, or are equivalent, where an interval of 90 % lies wholly beyond or within the \
margin: each verdict is then wrong with a probability of at most 5 %. Everything else is undecided. Points \
without repetitions are judged by their values alone, which is said.

Examples:
  virtbench analyse docs/data/paper2-adapters.csv
  virtbench analyse virtbench-adapters-2026-11-21 --margin 10% --html analysis.html
  virtbench analyse docs/data/paper3-cycles.csv
  virtbench analyse tiles.csv --html tiles.html
  virtbench analyse mine.csv --json | jq .pairs[0].throughput")]
pub struct AnalyseArgs {
    /// Table of results (CSV), or run folder
    #[arg(value_name = "FILE|DIR")]
    pub source: PathBuf,
    /// How much more or less counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// Write a page with figures here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every verdict as CSV here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}
