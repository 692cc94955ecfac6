//! `virtbench profile`

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use virtbench_units::{parse_duration_ns, parse_positive_duration_ns};

/// `virtbench profile`
#[derive(Debug, Args)]
#[command(after_help = "\
What a command and everything that it starts does to storage: rates, sizes, order, response times, think \
time, CPU. As root the figures come from the block layer's own events; else from the processes' accounts \
and the disks' statistics. Each figure names its source, and what cannot be seen says why. What the command \
prints goes to stderr. It is ended when --time is over.

A file for --from is a profile that --out wrote, or figures in TOML, such as docs/data/paper1-mailserver.toml.

Examples:
  virtbench profile --time 30s --out db.json -- pgbench -c 8 -T 60 bench
  virtbench profile --metric 'tps = ([0-9.]+)' --workers 8 --out db.json -- pgbench -c 8 -T 60 bench
  virtbench profile --pid 4242 --time 1m
  virtbench profile --from docs/data/paper1-mailserver.toml --json")]
#[command(group(ArgGroup::new("whom").args(["command", "pid", "from"]).required(true)))]
pub struct ProfileArgs {
    /// Profile this running process and what it starts; it is left running
    #[arg(long, value_name = "N")]
    pub pid: Option<u32>,
    /// Read a profile, or a user's figures, and check them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time", "ramp", "no_trace"])]
    pub from: Option<PathBuf>,
    /// Look at it for this long at most [default: 1h for a command, 10s for a process]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub time: Option<u64>,
    /// Leave out this much at first
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Do without the block layer's events
    #[arg(long)]
    pub no_trace: bool,
    /// Read its throughput from this: elapsed (runs an hour), io (its I/O rate), or a regular expression
    /// with one group over what it prints on stdout, such as 'tps = ([0-9.]+)'; the last match counts
    #[arg(long, value_name = "elapsed|io|REGEX", requires = "command", conflicts_with = "capacity")]
    pub metric: Option<String>,
    /// How many workers it has: clients, threads that each wait for what they ask for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Option<u32>,
    /// The application's capacity as it reports it, such as 850 transactions per second
    #[arg(long, value_name = "NUMBER")]
    pub capacity: Option<f64>,
    /// What the capacity counts
    #[arg(long, value_name = "NAME", requires = "capacity", default_value = "capacity")]
    pub capacity_name: String,
    /// Write the profile as JSON here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// The command with its arguments; options for virtbench stand before it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
