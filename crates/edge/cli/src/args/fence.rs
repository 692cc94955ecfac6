//! `virtbench fence`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use virtbench_fence::catalogue::{Variant, served};
use virtbench_fence_evaluation::{PaperFigure, Saturating};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::disk::SsdProfile;
use virtbench_units::parse_positive_duration_ns;
use virtbench_workload::Pace;

use super::fence_changes::{AddArgs, RemoveArgs, ResizeArgs, ReslotArgs};

/// What to do with a fence.
#[derive(Debug, Subcommand)]
pub enum FenceCommand {
    /// Run [VirtualFence 2013]'s evaluation in virtual time, measured beside published
    Simulate(SimulateArgs),
    /// Search slots, caches and partitions that meet targets, in virtual time
    Plan(PlanArgs),
    /// Divide devices among virtual disks, with an empty cache
    Format(FormatArgs),
    /// Serve virtual disks to guests over vhost-user-blk and NBD
    Serve(ServeArgs),
    /// Show what a running daemon counts
    Status(StatusArgs),
    /// Show what is on the devices of a fence that is not served, and check the cache
    Inspect(InspectArgs),
    /// Measure the service times of a fence's devices, for the scheduler to predict by
    Calibrate(CalibrateArgs),
    /// Write what the cache alone has to the disks, and leave it empty
    Drain(DrainArgs),
    /// Give a virtual disk another size or another part of the cache, without losing data
    Resize(ResizeArgs),
    /// Give a fence one virtual disk more, also while it is served
    Add(AddArgs),
    /// Take a virtual disk from a fence, also while it is served
    Remove(RemoveArgs),
    /// Change who has how many time slots
    Reslot(ReslotArgs),
}

/// `virtbench fence simulate`
#[derive(Debug, Args)]
#[command(after_help = "\
Disks are models, time is virtual: a seed gives the same bytes on every machine and with any number of \
threads. Deviation is the paper's: how far a virtual machine's throughput and mean response time move \
from what they are when it runs alone, in percent.

A configuration file is TOML; every line is optional:
  file_set_bytes = 33554432
  page_cache_hits = 0.0
  replications = 5
  saturating = \"one\"
  [hdd]
  capacity_bytes = 160_000_000_000
  rpm = 7200
  bytes_per_s = 80e6
  seek = { settle_ms = 1, root_ms = 15, linear_ms = 6 }

Examples:
  virtbench fence simulate
  virtbench fence simulate --html fence.html
  virtbench fence simulate --figure 1 --workload fileserver --rpm 15000
  virtbench fence simulate --trace web.csv --trace database.csv --html traces.html
  virtbench fence simulate --plan plan.toml --seed 2
  virtbench fence simulate --json | jq '.rows[] | select(.outside_band > 0)'")]
pub struct SimulateArgs {
    /// Only this figure of the paper; may be repeated: 1, 4a, 4b, 5, 6, 7, 8, own [default: all]
    #[arg(long, value_name = "FIGURE")]
    pub figure: Vec<PaperFigure>,
    /// Only this workload; may be repeated: fileserver, mailserver, webserver [default: all]
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<Personality>,
    /// Instead of the paper's figures, what a recorded trace of each machine meets: virtbench's CSV or fio's iolog
    /// (see docs/formats.md); repeated, once for each machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["figure", "workload"])]
    pub trace: Vec<PathBuf>,
    /// Instead of the paper's figures, a plan as `fence plan --toml` prints it; options of the world go before what it says
    #[arg(long, value_name = "FILE", conflicts_with_all = ["figure", "workload", "trace", "config"])]
    pub plan: Option<PathBuf>,
    /// How fast traces are replayed: recorded, or a speed such as 2x
    #[arg(long, value_name = "PACE", default_value = "recorded", requires = "trace")]
    pub pace: Pace,
    #[command(flatten)]
    pub world: WorldArgs,
    /// Write the page with figures here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The world that is simulated.
#[derive(Debug, Args)]
pub struct WorldArgs {
    /// Settings from a TOML file; the options below go before it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Seed of every random choice [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Revolutions a minute of the hard disk [default: 7200]
    #[arg(long, value_name = "N")]
    pub rpm: Option<f64>,
    /// The drive's seek time in ms over the fraction f of full stroke: A,B,C for A + B sqrt(f) + C f [default: 1,15,6]
    #[arg(long, value_name = "A,B,C")]
    pub seek: Option<Seek>,
    /// Which description of the solid-state drive is followed: spec or paper-fit [default: spec]
    #[arg(long, value_name = "PROFILE")]
    pub ssd: Option<SsdProfile>,
    /// Virtual time that each run is measured for [default: 200s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub duration: Option<u64>,
    /// Runs of each experiment, each with a seed of its own [default: 5]
    #[arg(long, value_name = "N")]
    pub replications: Option<u32>,
    /// Machines that run while saturation is sought: one (alone, the paper's words) or all
    #[arg(long, value_name = "one|all")]
    pub saturating: Option<Saturating>,
    /// Threads that run simulations; the result is the same [default: one a processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// A curve of seek times: milliseconds that each seek takes, that grow with the root of the distance, and with the distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seek(pub [f64; 3]);

impl std::str::FromStr for Seek {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let three = parts.ok().and_then(|parts| <[f64; 3]>::try_from(parts).ok());
        three.map(Self).ok_or_else(|| "write three numbers of milliseconds, such as 1,15,6".to_owned())
    }
}

/// `virtbench fence plan`
#[derive(Debug, Args)]
#[command(after_help = "\
Each candidate is a number of slots, their length, a cache size and a layout of partitions, or virtual devices \
instead of slots. All are simulated briefly, the best again at length; intervals are 95 %, and a target is met \
when the whole interval meets it. The exit code is 0 whether or not a plan meets the targets; --json says it \
in .met.

Examples:
  virtbench fence plan --workload mailserver --load 15,45,45,45 --deviation 15 --response 60
  virtbench fence plan --workload webserver --load 20,20 --deviation 10 --response 30 --html plan.html
  virtbench fence plan --workload webserver --load 20,20 --deviation 10 --response 30 --toml > plan.toml")]
pub struct PlanArgs {
    /// What the machines do: fileserver, mailserver or webserver
    #[arg(long, value_name = "NAME")]
    pub workload: Personality,
    /// File accesses a second of each machine, 1 to 8 of them
    #[arg(long, value_name = "N,...", value_delimiter = ',', required = true)]
    pub load: Vec<f64>,
    /// The most that any machine's mean response time may deviate in company, percent
    #[arg(long, value_name = "PERCENT")]
    pub deviation: f64,
    /// The longest mean response time of any machine in company, milliseconds
    #[arg(long, value_name = "MS")]
    pub response: f64,
    /// Candidates that are simulated at length
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub budget: u16,
    #[command(flatten)]
    pub world: WorldArgs,
    /// Write the page with the front here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the nearest plan as a file that `fence simulate --plan` takes
    #[arg(long, conflicts_with = "json")]
    pub toml: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Which pools a command is about.
#[derive(Debug, Args)]
pub struct PoolArg {
    /// Only this pool, of a configuration that has pools [default: all]
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
}

/// `virtbench fence format`
#[derive(Debug, Args)]
#[command(after_help = "\
Run it once before the first `fence serve`. Devices with anything on them are refused, be it a fence's or not. Pools are \
formatted one after another, though one is refused.")]
pub struct FormatArgs {
    /// The configuration, as for `fence serve`
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// Give up whatever is on the devices
    #[arg(long)]
    pub force: bool,
}

/// `virtbench fence serve`
#[derive(Debug, Args)]
#[command(after_help = serve_help())]
pub struct ServeArgs {
    /// What to serve
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// End when nobody holds the other end of stdin
    #[arg(long, hide = true, requires = "pool")]
    pub supervised: bool,
}

/// `virtbench fence status`
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon is asked at the configuration's `metrics = \"127.0.0.1:PORT\"`, where it serves OpenMetrics at /metrics, or at its \
control socket. In a configuration with pools each has its own; those that do not answer are named. Counts and \
means are since the daemon began; with --watch, after the first look, of the time since the look before.

slots: those that have begun, and in how many of them something was dispatched; credit is what was left of slots that \
ended early, overrun what others took too long; the balance is what slots to come are owed, negative what they owe. \
predictions: how much longer batches took than predicted, and how far predictions missed, on average.

steadiness: how much seconds of work differ, in the last minute of them and in all; a disk's own load makes its \
throughput differ too. variation is their standard deviation over their mean, spread the greatest less the least. A \
disk that is served has no run alone beside it: its deviation ([VirtualFence 2013], section 4.1) is from what the configuration \
says it has alone, in alone_iops and alone_response_ms of its [[disk]].

Examples:
  virtbench fence status fence.toml --watch
  virtbench fence status fence.toml --json | jq '.disks[] | {disk, slots, hit_ratio}'")]
pub struct StatusArgs {
    /// The configuration that is served
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// Again every second, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Print the OpenMetrics text itself
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    /// Print JSON; with --watch, a line a look
    #[arg(long)]
    pub json: bool,
}

/// `virtbench fence inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is written. --json prints one object, or {\"pools\": [...]} where the configuration has pools. A cache that says what no power failure leaves ends in exit code 8, one that is not as configured \
in exit code 3.

Examples:
  virtbench fence inspect fence.toml
  virtbench fence inspect fence.toml --data --json | jq '.cache.partitions[].dirty'")]
pub struct InspectArgs {
    /// The configuration, as for `fence serve`
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// Read every block that the cache holds and compare checksums
    #[arg(long)]
    pub data: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench fence calibrate`
#[derive(Debug, Args)]
#[command(after_help = "\
Random batches of 1 to 100 blocks with a random mix of reads and writes ([VirtualFence 2013], section 6.3); half of them are held \
out, and the errors are those of predicting them. Blocks are written with what they contain. The devices must have been \
prepared by `fence format` and not be served.

`fence serve` predicts by the file when the configuration names it:
  [scheduler.predict]
  file = \"fence.predict.toml\"

Each pool of a configuration has a file of its own, [default: CONFIG with .NAME.predict.toml], under [pool.NAME.scheduler.predict].")]
pub struct CalibrateArgs {
    /// The configuration, as for `fence serve`
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// How long each device is measured, a hundred batches at least
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Write what was found here [default: what the configuration names, or CONFIG with .predict.toml]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Seed of places, sizes and kinds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench fence drain`
#[derive(Debug, Args)]
#[command(after_help = "\
The fence must not be served. Afterwards its disks can be served without the cache (drop [fast], or HDD+NWC), with another \
fast device, or with the same: a fast device with nothing on it becomes an empty cache. The device that disks live on knows \
which cache has newer data, and from which start: `fence serve` refuses to go on without it or with an older copy.

With --force a cache that is lost, another one or an older copy is given up, and so is what it alone has; of the newest \
cache only blocks that are damaged or cannot be read, each by name. Disks then go on with what their own device has. A disk \
that cannot be written or is full ends the command with nothing given up: repair that and give it again.

Examples:
  virtbench fence drain fence.toml
  virtbench fence drain fence.toml --force    # the fast device died and was replaced")]
pub struct DrainArgs {
    /// The configuration, as for `fence serve`
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub only: PoolArg,
    /// Give up what cannot be written back
    #[arg(long)]
    pub force: bool,
}

/// The schedulers that the daemon serves, a line each.
fn schedulers() -> String {
    let line = |variant: &Variant| format!("  {:<20}{}\n", variant.name, variant.description);
    served().map(line).collect()
}

fn serve_help() -> String {
    format!(
        "\
The configuration is TOML. Devices are file:PATH (a file, block or loop device, by direct I/O), buffered:PATH (through the page cache), \
null:SIZE, or behave as a hard disk or a \
solid-state drive over a file: hdd:PATH?rpm=7200&seek=11ms&rate=80MB&capacity=160GB&order=scan, \
ssd:PATH?profile=spec|paper-fit&read=50us&write=141us, each with seed=N and sync=off (a flush costs nothing, and only \
the host's death loses data). They are prepared by `fence format`. They are shared by one of the schedulers \
below.

  [slow]
  device = \"file:/srv/slow.img\"
  [fast]
  device = \"file:/srv/fast.img\"
  [scheduler]
  name = \"VirtualFence\"
  slot_ms = 20.0
  [[disk]]
  name = \"web\"
  size = \"10 GiB\"
  cache = \"1 GiB\"
  slots = 2
  socket = \"/run/virtbench/web.sock\"

A configuration with several devices has pools: [pool.NAME.slow], [pool.NAME.fast], [pool.NAME.nbd], metrics and control under \
[pool.NAME], and pool = \"NAME\" in each [[disk]]. Each pool has a daemon of its own, which is begun again if it fails while \
another pool is served. When none is, the command ends with the worst exit code of theirs. [cache] and [scheduler] count for \
all, but for what [pool.NAME.cache] and [pool.NAME.scheduler] say. --pool NAME serves one pool alone.

`fence resize` and `fence reslot` reach the daemon at its control socket, its owner's alone: control = \"PATH\", or the first \
disk's socket with .control behind it.

Stopping the daemon loses nothing, nor does a kill: behind a cache, what was answered and not flushed is also in /dev/shm \
([cache] memory = FOLDER names another tmpfs), where the next daemon finds it. A power failure leaves what was flushed; with \
write_through = true in its [[disk]] each write of a disk is stable before it is answered.

A device or a disk can have fault = \"eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%,full=1%\". Behind a cache, what a \
device that fails does not take stays there and is tried again; writes wait once there is no room, and are refused after 10 s \
until the device works. After a failed flush of the fast device writes are refused until the next start. Both are logged; \
cache_degraded in the figures tells. A disk whose part of the cache cannot be believed is not served, the others are.

QEMU attaches a disk with memory that is shared:
  -object memory-backend-memfd,id=m,size=1G,share=on -machine q35,memory-backend=m
  -chardev socket,id=c,path=/run/virtbench/web.sock,reconnect=1 -device vhost-user-blk-pci,chardev=c

QEMU 7.2 to 9.0 does not connect again once a connection has ended within its own handshake, which a daemon that is killed \
twice in a row can meet; the guest's requests then wait until QEMU is begun anew. QEMU 9.1 mends it. SIGTERM is safe: a daemon \
ends within 20 s, whatever its devices and clients do; SIGHUP does not end it.

Schedulers (Table 1 is that of [VirtualFence 2013]):
{}",
        schedulers()
    )
}
