//! The command line. Help, manual page and completions are generated from this.

pub mod fence;
mod load_args;
pub mod repeat;
pub mod saturate;
mod spec;
pub mod surface;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use virtbench_engine::FaultSpec;
use virtbench_units::{parse_bytes, parse_duration_ns};
use virtbench_workload::{AccessLine, EngineKind, parse_mix_line};

pub use load_args::LoadOptions;
pub use spec::{ExportArg, ExportFormat, SpecArgs};

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
    /// Find the highest rate that a target keeps up with, and what latency costs on the way there
    Saturate(Box<saturate::SaturateArgs>),
    /// Predict a whole throughput surface from the points that tell most about it
    Surface(surface::SurfaceArgs),
    /// Run an experiment and write its report
    #[command(subcommand)]
    Study(StudyCommand),
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
}

/// `virtbench study native-vs-vm`
#[derive(Debug, Args)]
#[command(after_help = "\
Native and VM alternate point by point on one test disk, which is made in --target-dir and removed \
afterwards. Points are written to the run folder as they are measured; after a kill or a power cut, \
the same command with --resume goes on with the missing ones.

A grid file is TOML:
  blocks = [\"4k\", \"64k\"]
  reads = [0, 50, 100]
  randoms = [0, 100]
  repetitions = 5
  ramp = \"1s\"
  time = \"10s\"

Examples:
  virtbench study native-vs-vm
  virtbench study native-vs-vm --grid paper --outstanding 28 --out mojave
  virtbench study native-vs-vm --out mojave --grid paper --outstanding 28 --resume")]
pub struct NativeVsVmArgs {
    /// Points to measure: quick (18 points, 3 repetitions, under four minutes), paper (100 points of
    /// three minutes in both environments: ten hours), or a TOML file
    #[arg(long, value_name = "quick|paper|FILE", default_value = "quick")]
    pub grid: String,
    /// Folder for the test disk; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Run folder [default: virtbench-native-vs-vm-DATE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the missing points of the run in --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Size of the test disk
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// I/Os that each worker keeps outstanding (paper 1: 28, 47 and 64)
    #[arg(long, value_name = "N", default_value = "16")]
    pub outstanding: u32,
    /// Workers
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: u32,
    /// Repetitions of each point, instead of the grid's
    #[arg(long, value_name = "N")]
    pub repetitions: Option<u32>,
    /// Ramp-up before each point, instead of the grid's
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub ramp: Option<u64>,
    /// Measuring time of each point, instead of the grid's
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub time: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What the guest runs on
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    pub json: bool,
}

/// What a guest is made of.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// Virtual processors of the guest
    #[arg(long, value_name = "N", default_value = "1")]
    pub vcpus: u32,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Disk adapter of the guest
    #[arg(long, value_name = "NAME", default_value = virtbench_lab::DEFAULT_ADAPTER.name)]
    pub adapter: String,
    /// Kernel of the guest, with its modules in ../lib/modules [default: found by doctor]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// What executes the guest's instructions
    #[arg(long, value_enum, default_value = "auto")]
    pub accelerator: AcceleratorArg,
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorArg {
    /// KVM if a guest really boots under it, else TCG
    Auto,
    /// Hardware virtualization
    Kvm,
    /// Software emulation
    Tcg,
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
  virtbench load --spec mailserver.icf --target /srv/test.img --time 30s --export fio-json=mail.json")]
pub struct LoadArgs {
    /// File, block device, `null` (the engine alone), NBD export (nbd://HOST:PORT/EXPORT or
    /// nbd+unix:///EXPORT?socket=PATH), or vhost-user:SOCKET (a vhost-user-blk server)
    #[arg(long, value_name = "FILE|DEVICE|URI", required_unless_present = "spec")]
    pub target: Option<PathBuf>,
    /// A load from a file, and results into files
    #[command(flatten)]
    pub spec: SpecArgs,
    /// Use this much of the target from its start; a file that does not exist is made this large
    /// [default: 1GiB for a new file, else the whole target]
    #[arg(long, value_parser = parse_bytes)]
    pub size: Option<u64>,
    /// Block size
    #[arg(long, default_value = "4k", value_parser = parse_bytes, conflicts_with = "mix")]
    pub bs: u64,
    /// Reads, in percent of the operations
    #[arg(long, value_name = "PERCENT", default_value = "100", allow_negative_numbers = true, value_parser = percent, conflicts_with = "mix")]
    pub read: f64,
    /// Random seeks, in percent of the operations
    #[arg(long, value_name = "PERCENT", default_value = "100", allow_negative_numbers = true, value_parser = percent, conflicts_with = "mix")]
    pub random: f64,
    /// I/Os that each worker keeps outstanding
    #[arg(long, value_name = "N", default_value = "16")]
    pub outstanding: u32,
    /// Workers: threads, each with its own stream and position
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: u32,
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
    /// size=4k,share=60,read=70,random=100,delay=0ms,burst=1,align=4k (size and share must be there)
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
    /// Have operations fail, come up short, be late or hang, to see what that looks like:
    /// eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%
    #[arg(long, value_name = "SPEC")]
    pub fault: Option<FaultSpec>,
    /// What most loads leave alone
    #[command(flatten)]
    pub options: LoadOptions,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Steady state and repetitions
    #[command(flatten)]
    pub repeat: repeat::RepeatArgs,
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
