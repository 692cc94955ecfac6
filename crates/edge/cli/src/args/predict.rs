//! `virtbench profile`, `costs` and `predict`, `study predictions`, and the VM in which all of them run workloads on files and commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum};
use virtbench_model::predict::PredictionMethod;
use virtbench_study::{Storage, VmOptions, platform_names, read_user_file};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::GuestArgs;
use super::study::{FolderArgs, QemuArgs};
use crate::exit::{Failure, Kind};

/// How to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// Whichever fits what is known
    Auto,
    /// The surface's ratio where it is like the application ([ESX Disk 2003], section 4)
    Ratio,
    /// Latencies of a model load on both sides, added up ([ESX Disk 2003], section 5)
    Latency,
    /// Each part of the application's time by what it costs in the VM (`virtbench costs`)
    Scaling,
    /// What it asks of the kernel, times what that costs in a VM that computes as fast (`virtbench costs`)
    Crossings,
    /// A closed queueing network of processors and disk
    Queueing,
}

impl MethodArg {
    /// The method, or none for a choice.
    pub fn method(self) -> Option<PredictionMethod> {
        match self {
            Self::Auto => None,
            Self::Ratio => Some(PredictionMethod::Ratio),
            Self::Latency => Some(PredictionMethod::Latency),
            Self::Scaling => Some(PredictionMethod::Scaling),
            Self::Crossings => Some(PredictionMethod::Crossings),
            Self::Queueing => Some(PredictionMethod::Queueing),
        }
    }
}

/// `virtbench predict`
#[derive(Debug, Args)]
#[command(after_help = "\
A surface is the run folder of `study native-vs-vm`, or of `study adapters` for the VM's side beside it. A \
model load's results are figures in TOML, such as docs/data/paper1-thar-vm.toml.

A side is the name of an environment of the surface: native, vm, or vm:SETUP where SETUP is an adapter or a \
configuration, such as vm:nvme or vm:virtio-blk,iothread=on.

Examples:
  virtbench predict --profile db.json --surface run
  virtbench predict --profile db.json --surface run --surface adapters --to vm:nvme --html prediction.html
  virtbench predict --profile db.json --costs costs.json --verify
  virtbench predict --profile db.json --platform uml
  virtbench predict --profile db.json --run-model --model-out runs.toml --verify
  virtbench predict --profile docs/data/paper1-mailserver.toml --model docs/data/paper1-thar-vm.toml --as-published")]
pub struct PredictArgs {
    /// The application: a profile of `virtbench profile --out`, or figures in TOML
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Where it ran
    #[arg(long, value_name = "SIDE", default_value = "native")]
    pub from: String,
    /// Where it is to run
    #[arg(long, value_name = "SIDE", default_value = "vm")]
    pub to: String,
    /// Run folder that holds a side, or both; may be given twice
    #[arg(long, value_name = "DIR")]
    pub surface: Vec<PathBuf>,
    /// Results of a model load on both sides
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Run a load like the application's on both sides, with the think time with which it does as much I/O on this
    /// host, and take its results; --size and --target-dir say where
    #[arg(long, conflicts_with = "model")]
    pub run_model: bool,
    /// Write those results here, for --model
    #[arg(long, value_name = "FILE", requires = "run_model")]
    pub model_out: Option<PathBuf>,
    /// What pieces of work cost on both sides: the file of `virtbench costs --out`
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// For whom has no such VM: the costs of a platform that virtbench brings along, measured on another host
    #[arg(long, value_name = "NAME", conflicts_with = "costs", value_parser = PossibleValuesParser::new(platform_names()))]
    pub platform: Option<String>,
    /// How to predict
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// How much longer computing takes in the VM, in percent: one figure, or user,system
    #[arg(long, value_name = "PERCENT[,PERCENT]", value_parser = overheads, allow_negative_numbers = true)]
    pub cpu_overhead: Option<(f64, f64)>,
    /// Time of the same computation there as a multiple of that here, where the processors differ
    #[arg(long, value_name = "FACTOR", requires = "cpu_overhead", default_value = "1")]
    pub time_factor: f64,
    /// Processors of the VM [default: those of the surface's VM, or of the costs']
    #[arg(long, value_name = "N")]
    pub vcpus: Option<u32>,
    /// Use a surface of another host than the profile, or of another adapter than --to names
    #[arg(long)]
    pub allow_other: bool,
    /// Round where [ESX Disk 2003] does: times to 0.1 ms, the ratio to two digits
    #[arg(long)]
    pub as_published: bool,
    /// Write a page with the breakdown of an operation's time here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Trying it
    #[command(flatten)]
    pub verify: VerifyArgs,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
}

/// User's and system's, as shares.
fn overheads(text: &str) -> Result<(f64, f64), String> {
    let share = |text: &str| {
        let value: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
        value
            .filter(|percent| (-90.0..=100_000.0).contains(percent))
            .map(|percent| percent / 100.0)
            .ok_or_else(|| "write percentages above -90, such as 9.4 or 3,25".to_owned())
    };
    match text.split_once(',') {
        Some((user, system)) => Ok((share(user)?, share(system)?)),
        None => share(text).map(|both| (both, both)),
    }
}

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

/// `virtbench costs`
#[derive(Debug, Args)]
#[command(after_help = "\
The same pieces of work natively and in a VM: twelve computations for user code, small system calls for \
kernel code, large ones for copying, flushed writes for waiting. `predict --costs FILE` multiplies each part of \
an application's time by what it costs in the VM.

Examples:
  virtbench costs --out costs.json
  virtbench predict --profile db.json --costs costs.json --verify
  virtbench costs --accelerator kvm --vcpus 1 --export kvm-epyc --out kvm-epyc.json    # for others to predict with")]
pub struct CostsArgs {
    /// Virtual processors of the VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
    /// Write them as JSON here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write them for others, who have no such platform: smaller, with this name of it and today's date
    #[arg(long, value_name = "NAME", requires = "out")]
    pub export: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `virtbench study predictions`
#[derive(Debug, Args)]
#[command(after_help = "\
Every case is profiled natively, predicted by what pieces of work cost in the VM (`virtbench costs`), and only \
then run there. Trials are written to the run folder as they are made; after a kill or a power cut, --resume with the run \
folder goes on with the missing ones.

A case in the file, whose first line may say set = 'tuning' or set = 'held-out':
  [[case]]
  name = 'sqlite'
  command = ['sqlite3', 'app.db', '.read transactions.sql']
  metric = 'elapsed'
  workers = 1
  prepare = 'sqlite3 app.db < schema.sql'

Examples:
  virtbench study predictions --cases docs/data/predictions.toml --out predictions
  virtbench study predictions --cases docs/data/predictions.toml --out predictions --only sqlite --trials 5
  virtbench study predictions --resume --out predictions
  virtbench study predictions --cases docs/data/predictions.toml --vcpus 1 --storage virtio-blk --storage virtio-blk,cache=writeback \
--storage virtio-blk,iops=500 --storage virtio-blk,delay=5ms --storage vhost-user-blk@fence,scheduler=HDD+NWC,slow=file,slot=20ms
  virtbench study predictions --again --method queueing --out predictions")]
pub struct PredictionsArgs {
    /// The applications
    #[arg(long, value_name = "FILE", required_unless_present_any = ["resume", "again"])]
    pub cases: Option<PathBuf>,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
    /// A storage of VMs, as --adapter takes one, or one of two disks of the fence, the other of which is idle, as study compare takes one;
    /// given several times. Applications run in a VM on the first, and are predicted for the others, in place of from this host for one VM
    #[arg(long, value_name = "ADAPTER", conflicts_with_all = ["costs", "adapter"])]
    pub storage: Vec<String>,
    /// How often each is tried
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub trials: u32,
    /// How often each is run in a trial, on either side; the run in the middle counts. One more comes before it natively,
    /// to warm up and to count what it asks the kernel for
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Only these cases; may be repeated
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// What work costs, as `virtbench costs --out` wrote it [default: it is measured first]
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// How to predict
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// Predict again from the profiles and costs of the run in --out, by another --method or a changed model, and run
    /// nothing: the conclusion is printed, and the folder is left as it is
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub again: bool,
    /// Virtual processors of the VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
}

/// What the VM is made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The VM that it is run in")]
pub struct VmArgs {
    /// Memory of the VM
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Size of its disk
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// Its disk: ADAPTER[,setting=value...], where iops=N limits it to so many I/Os a second and delay=TIME answers each that much later
    #[arg(long, value_name = "ADAPTER", default_value = virtbench_lab::DEFAULT_ADAPTER.name, value_parser = Storage::parse)]
    pub adapter: Storage,
    /// File system on its disk
    #[arg(long, value_name = "ext4|xfs", default_value = "ext4")]
    pub filesystem: String,
    /// Folder for its disk; the storage under it is what is measured [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// What runs the VM
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Reference applications, instead of those that virtbench brings along
    #[arg(long, value_name = "FILE", hide = true)]
    pub references: Option<PathBuf>,
    /// How long it may take there
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_positive_duration_ns)]
    pub limit: u64,
}

impl VmArgs {
    /// The folder for its disk.
    ///
    /// # Errors
    /// It is the current one, which is gone.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.target_dir.clone().map_or_else(std::env::current_dir, Ok);
        Ok(folder.context("cannot find the current folder")?)
    }

    /// The VM, with so many processors, its disk in `folder`.
    ///
    /// # Errors
    /// The file of reference applications cannot be read.
    pub fn options(&self, vcpus: u32, folder: PathBuf) -> Result<VmOptions, Failure> {
        let read = |path: &PathBuf| {
            read_user_file(path)
                .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", path.display())))
        };
        Ok(VmOptions {
            guest: self.guest(vcpus).options(),
            disk_bytes: self.size,
            storage: self.adapter.clone(),
            filesystem: self.filesystem.clone(),
            folder,
            limit_ns: self.limit,
            references: self.references.as_ref().map(read).transpose()?,
        })
    }

    /// The guest, with so many processors.
    pub fn guest(&self, vcpus: u32) -> GuestArgs {
        GuestArgs { vcpus, memory: self.memory, qemu: self.qemu.clone() }
    }
}

/// `predict --verify`
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trying it")]
pub struct VerifyArgs {
    /// Run the application in the VM, and say how far the prediction was off. The profile knows the command
    /// and what to read its throughput from (profile --metric)
    #[arg(long)]
    pub verify: bool,
    /// A file or folder that the command needs in the VM, under the same name; its program and shared
    /// libraries are found without; may be repeated
    #[arg(long, value_name = "PATH", requires = "verify")]
    pub with: Vec<PathBuf>,
    /// Begin with a copy of this folder's files on the VM's disk, where the command is run
    #[arg(long, value_name = "DIR", requires = "verify")]
    pub disk_from: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::overheads;

    #[test]
    fn overheads_are_one_or_two_percentages() {
        assert_eq!(overheads("9.4%"), Ok((0.094, 0.094)));
        assert_eq!(overheads("3,25"), Ok((0.03, 0.25)));
        for text in ["", "x", "-95", "1,", "NaN"] {
            assert!(overheads(text).is_err(), "{text}");
        }
    }
}
