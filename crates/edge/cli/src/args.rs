//! The command line. Help, manual page and completions are generated from this.

pub mod analyse;
pub mod costs;
mod deviation;
pub mod fence;
mod job;
mod load_args;
pub mod predict;
pub mod predictions;
pub mod profile;
pub mod repeat;
pub mod saturate;
mod sets;
mod spec;
mod study;
pub mod surface;
pub mod there;
mod trace;
pub mod workload;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use virtbench_units::{parse_bytes, parse_duration_ns};
use virtbench_workload::{AccessLine, EngineKind, FaultSpec, WorkloadSpec, parse_mix_line};

use crate::say::tell;

pub use deviation::{DeviationArgs, SaturatingArg, Systems};
pub use job::NamedJob;
pub use load_args::{ApplyArgs, LoadOptions};
pub use sets::{NeighboursArgs, PinArg, SetsArgs};
pub use spec::{ExportArg, ExportFormat, SpecArgs};
pub use study::{AcceleratorArg, AdaptersArgs, GuestArgs, NativeVsVmArgs, RunArgs};
pub use trace::TraceArgs;

/// Measures, predicts and fences the performance of virtual machines.
#[derive(Debug, Parser)]
#[command(name = "virtbench", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply an Iometer-style load to a file or device and report what came of it
    Load(Box<LoadArgs>),
    /// Run a classic workload on this machine: memory throughput, a suite of computations
    Workload(Box<workload::WorkloadArgs>),
    /// Find the highest rate that a target keeps up with, and what latency costs on the way there
    Saturate(Box<saturate::SaturateArgs>),
    /// Predict a whole throughput surface from the points that tell most about it
    Surface(surface::SurfaceArgs),
    /// Run an experiment and write its report
    #[command(subcommand)]
    Study(StudyCommand),
    /// Compare configurations with each other: a run's, or those of a table somebody published
    Analyse(analyse::AnalyseArgs),
    /// Characterise what an application does to its storage
    Profile(Box<profile::ProfileArgs>),
    /// Measure what user code, kernel code, copying and waiting cost in a VM, against natively
    Costs(Box<costs::CostsArgs>),
    /// Predict how an application will do in a VM, from its profile
    Predict(Box<predict::PredictArgs>),
    /// Give each virtual machine the same storage performance, alone or in company
    #[command(subcommand)]
    Fence(fence::FenceCommand),
    /// Write the report of a run folder again
    Report(ReportArgs),
    /// Show what this machine has and lacks, with the command that mends it
    Doctor(DoctorArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArgs),
    /// Write a completion script for a shell to stdout
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Which experiment.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// What does virtualization cost my storage? The same load natively and in a VM
    NativeVsVm(Box<NativeVsVmArgs>),
    /// Which virtual adapter, over which backing? The same load through each, and what it costs the host
    Adapters(Box<AdaptersArgs>),
    /// Do my VMs get even shares? The same workload in one VM, in two, in three, ... at once
    Neighbours(Box<NeighboursArgs>),
    /// Do my VMs disturb each other? Each alone and all together, and how far they deviate
    Deviation(Box<DeviationArgs>),
    /// Are predictions right? Applications profiled, predicted, and then run in a VM
    Predictions(Box<predictions::PredictionsArgs>),
}

/// `virtbench report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run folder
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write the page here [default: DIR/report.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the points as CSV here [default: DIR/results.csv]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// `virtbench doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Folder whose storage would be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub target_dir: PathBuf,
    /// Kernel of guests [default: the one that set-up prepared, else the host's]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Probe the accelerator again
    #[arg(long)]
    pub probe: bool,
    /// Print only what is missing
    #[arg(long)]
    pub quiet: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Where the manual pages go.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write them into
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

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

/// `virtbench load`
#[derive(Debug, Args)]
#[command(after_help = "\
Each operation is a read with the probability --read, and seeks to a random aligned offset with the \
probability --random; otherwise it goes on from where the worker's last operation ended. A file that \
does not exist is made and written first. Files that virtbench did not make, and block devices, are \
never written without --allow-overwrite; nor is what an NBD or vhost-user server serves.

Examples:
  virtbench load --target /srv/test.img --size 1GiB --bs 4k --read 70 --random 100
  virtbench load --target 'nbd+unix:///?socket=/run/disk.sock' --outstanding 32
  virtbench load --target vhost-user:/run/disk.sock --workers 2
  virtbench load --target /srv/test.img --mix size=4k,share=80,read=70 --mix size=64k,share=20,read=0,random=0
  virtbench load --target /srv/test.img --json | jq .total.iops
  virtbench load --trace day.csv --pace 2x --target /srv/test.img
  virtbench load --spec mailserver.icf --target /srv/test.img --time 30s --export fio-json=mail.json")]
#[command(group(ArgGroup::new("what").args(["target", "spec"]).required(true).multiple(true)))]
pub struct LoadArgs {
    /// The load
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// A load from a file, and results into files
    #[command(flatten)]
    pub spec: SpecArgs,
    /// A recorded trace
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Show IOPS, bandwidth and a latency heat map on stderr while the load runs; a line a second where
    /// stderr is no terminal
    #[arg(long)]
    pub live: bool,
    /// How it is applied
    #[command(flatten)]
    pub apply: ApplyArgs,
    /// Steady state and repetitions
    #[command(flatten)]
    pub repeat: repeat::RepeatArgs,
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
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration_ns)]
    pub time: u64,
    /// Length of an interval of the series
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration_ns)]
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

/// Reads `NAME[:KEY=VALUE,...]`, `MODEL.f[:KEY=VALUE,...]` or `dbench[:KEY=VALUE,...]`.
pub fn read_workload(text: &str) -> Result<WorkloadSpec, String> {
    virtbench_study::read_workload(text, &mut |remark| tell!("{remark}"))
}

fn percent(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .trim()
        .parse()
        .ok()
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| "a percentage lies between 0 and 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn percentages_have_bounds() {
        assert_eq!(percent("70"), Ok(70.0));
        assert_eq!(percent("33.5%"), Ok(33.5));
        for text in ["101", "-1", "NaN", "x", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
