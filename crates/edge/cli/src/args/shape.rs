//! What is applied to which target, whatever is done with it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};
use virtbench_workload::{AccessLine, EngineKind, FaultSpec, parse_mix_line};

use super::load_args::LoadOptions;
use super::percent::percent;

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
