//! `virtbench compare --alternate`

use std::path::PathBuf;

use clap::{Args, value_parser};

/// Both sides measured in turn, before they are compared.
#[derive(Debug, Args)]
pub struct AlternateArgs {
    /// Measure both first, in turn: BEFORE and AFTER are studies as files (or runs whose study is run again), AFTER being
    /// BEFORE where only the commands differ
    #[arg(long)]
    pub alternate: bool,
    /// Turns of each side; a turn measures every point once
    #[arg(long, value_name = "N", default_value = "5", requires = "alternate", value_parser = value_parser!(u32).range(2..=1000))]
    pub repetitions: u32,
    /// The virtbench that measures BEFORE [default: this one]
    #[arg(long, value_name = "FILE", requires = "alternate")]
    pub before_command: Option<PathBuf>,
    /// The virtbench that measures AFTER [default: this one]
    #[arg(long, value_name = "FILE", requires = "alternate")]
    pub after_command: Option<PathBuf>,
    /// Folder for the runs of both sides [default: virtbench-alternate-DATE]
    #[arg(long, value_name = "DIR", requires = "alternate")]
    pub out: Option<PathBuf>,
    /// Go on with the missing turns of --out
    #[arg(long, requires = "alternate", requires = "out", conflicts_with_all = [
        "before", "after", "repetitions", "before_command", "after_command"
    ])]
    pub resume: bool,
}
