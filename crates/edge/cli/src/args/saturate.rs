//! `virtbench saturate`

use clap::{ArgGroup, Args, ValueEnum};
use virtbench_model::{Slo, parse_slo};

use super::ShapeArgs;

/// `virtbench saturate`
#[derive(Debug, Args)]
#[command(after_help = "\
First a closed loop shows how much the target does when it is never idle; then open loops at rates \
chosen by bisection show the highest that it keeps up with (and, with --slo, in time); then latency is \
measured at shares of that rate. --outstanding bounds how many operations of the open loop can be under \
way, so give it room. The knee is where throughput over mean latency is greatest (Kleinrock 1979).

Examples:
  virtbench saturate --target /srv/test.img --size 1GiB --outstanding 64
  virtbench saturate --target /srv/test.img --read 70 --slo 'p99<10ms' --time 10s
  virtbench saturate --target /srv/test.img --json | jq .rate")]
#[command(group(ArgGroup::new("what").args(["target"]).required(true)))]
pub struct SaturateArgs {
    /// The load
    #[command(flatten)]
    pub load: ShapeArgs,
    /// The search
    #[command(flatten)]
    pub search: SearchArgs,
}

/// How saturation is searched.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Points of the latency-throughput curve: 25, 50, 75, 90 and 100 % of saturation, and between
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u32).range(5..=100))]
    pub points: u32,
    /// Repetitions of each point of the curve
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub curve_repeat: u32,
    /// A limit on latency, counted from the intended start: mean, p50, p90, p95, p99, p99.9 or max
    #[arg(long, value_name = "FIGURE<TIME", value_parser = parse_slo)]
    pub slo: Option<Slo>,
    /// When operations of the open loops arrive
    #[arg(long, value_enum, default_value = "poisson")]
    pub curve_arrivals: ArrivalsArg,
}

/// When operations of an open loop arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// At exponentially distributed distances, as independent users do
    Poisson,
    /// At equal distances
    Constant,
}
