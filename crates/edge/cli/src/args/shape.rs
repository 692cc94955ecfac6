//! What is applied to which target, whatever is done with it; and the searches that apply it again and again: `virtbench
//! saturate` and `virtbench surface`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use virtbench_model::{Slo, parse_slo};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};
use virtbench_workload::{AccessLine, EngineKind, FaultSpec, parse_mix_line};

use super::load_args::LoadOptions;
use super::numbers::{percent, share};

/// How operations are handed to the kernel.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EngineArg {
    /// Asynchronously through io_uring
    #[value(name = "io_uring")]
    IoUring,
    /// One blocking system call at a time
    Psync,
}

impl From<EngineArg> for EngineKind {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::IoUring => Self::IoUring,
            EngineArg::Psync => Self::Psync,
        }
    }
}

/// What every load of a target can be told, whatever its mix.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Use this much of the target from its start (1GiB is 2^30 bytes, 1GB 10^9, 1G as 1GiB); a file that
    /// does not exist is made this large, one that is smaller is refused without --grow
    /// [default: 1GiB for a new file, else the whole target]
    #[arg(long, value_parser = parse_bytes)]
    pub size: Option<u64>,
    /// Permit making a test file larger where it has less than is asked for; its contents are written anew
    #[arg(long)]
    pub grow: bool,
    /// I/Os that each worker keeps outstanding
    #[arg(long, value_name = "N", default_value = "16")]
    pub outstanding: u32,
    /// Workers: threads, each with its own stream and position
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: u32,
    /// Seed of every random choice [default: drawn, and reported]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How operations reach the kernel
    #[arg(long, value_enum, default_value = "io_uring")]
    pub engine: EngineArg,
    /// Go through the page cache instead of around it (O_DIRECT)
    #[arg(long)]
    pub buffered: bool,
    /// Permit writing to a block device, to what a server serves, or to a file that virtbench did not make
    #[arg(long)]
    pub allow_overwrite: bool,
}

/// A load and its target, for whatever is done with it.
#[derive(Debug, Args)]
pub struct ShapeArgs {
    /// File, block device, `null` (the engine alone), NBD export (nbd://HOST:PORT/EXPORT or
    /// nbd+unix:///EXPORT?socket=PATH), or vhost-user:SOCKET (a vhost-user-blk server)
    #[arg(long, value_name = "FILE|DEVICE|URI")]
    pub target: Option<PathBuf>,
    /// How much, how many, how
    #[command(flatten)]
    pub common: CommonArgs,
    /// Block size
    #[arg(long, default_value = "4k", value_parser = parse_bytes, conflicts_with = "mix")]
    pub bs: u64,
    /// Reads, in percent of the operations
    #[arg(long, value_name = "PERCENT", default_value = "100", allow_negative_numbers = true, value_parser = percent, conflicts_with = "mix")]
    pub read: f64,
    /// Random seeks, in percent of the operations
    #[arg(long, value_name = "PERCENT", default_value = "100", allow_negative_numbers = true, value_parser = percent, conflicts_with = "mix")]
    pub random: f64,
    /// Delay after each burst
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = parse_duration_ns, conflicts_with = "mix")]
    pub think: u64,
    /// Operations in a burst
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "mix")]
    pub burst: u32,
    /// Offsets are multiples of this [default: the block size]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "mix")]
    pub align: Option<u64>,
    /// A line of a mix, instead of the six options above; may be repeated, shares must add up to 100:
    /// size=4k,share=60,read=70,random=100,delay=0ms,burst=1,align=4k,trim=0,distribution=zipf:1.1
    /// (size and share must be there)
    #[arg(long, value_name = "SPEC", value_parser = parse_mix_line)]
    pub mix: Vec<AccessLine>,
    /// Ramp-up before measuring
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Measuring time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Length of an interval of the series
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive_duration_ns)]
    pub interval: u64,
    /// Have operations fail, come up short, be late or hang, to see what that looks like:
    /// eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%,full=1%
    #[arg(long, value_name = "SPEC")]
    pub fault: Option<FaultSpec>,
    /// What most loads leave alone
    #[command(flatten)]
    pub options: LoadOptions,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

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

/// `virtbench surface`
#[derive(Debug, Args)]
#[command(after_help = "\
A Gaussian process predicts the points that are not measured and says how far off it may be; the next \
point is the one that tells most about all others. It ends when half of the predictions should be \
within --error, or when --budget is spent.

A grid file is TOML, as for `virtbench study native-vs-vm`; each point is measured once.

Examples:
  virtbench surface --target /srv/test.img --size 1GiB --time 3s
  virtbench surface --target /srv/test.img --grid mine.toml --budget 50% --error 3% --csv surface.csv")]
pub struct SurfaceArgs {
    /// File, block device, or `null` (the engine alone)
    #[arg(long, value_name = "FILE|DEVICE")]
    pub target: PathBuf,
    /// How much, how many, how
    #[command(flatten)]
    pub common: CommonArgs,
    /// Points of the surface: paper (100 points: 1k to 16k x reads x randoms), quick (18), or a TOML file
    #[arg(long, value_name = "paper|quick|FILE", default_value = "paper")]
    pub grid: String,
    /// The most measurements, as a share of the grid's points
    #[arg(long, value_name = "PERCENT", default_value = "30%", value_parser = share)]
    pub budget: f64,
    /// Stop when the median error of the other points should be below this
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub error: f64,
    /// Ramp-up before each point [default: 500ms, or the grid file's]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub ramp: Option<u64>,
    /// Measuring time of each point [default: 3s, or the grid file's]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub time: Option<u64>,
    /// Write the surface as CSV here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}
