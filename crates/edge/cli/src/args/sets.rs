//! `virtbench study neighbours`, and what studies of several VMs at once have in common.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_study::{ColocationOptions, NamedEnvironment, NamedJob, Setup};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::GuestArgs;
use super::folder::FolderArgs;
use super::job::read_job;
use super::qemu::QemuArgs;
use crate::exit::{Failure, Kind};

/// `virtbench study neighbours`
#[derive(Debug, Args)]
#[command(after_help = "\
Every VM runs the same workload, and all start at one moment. A workload is written as for `virtbench \
workload` (memory, cpu, bonnie, iozone, fileserver, mailserver, webserver, MODEL.f, dbench, command), or is a \
load: load:size=4k,read=70,random=100,outstanding=16,time=10s. Each VM has a disk of its own, with a file \
system where the workload needs one.

With --environment the machines live in environments, on one host or several; they are called vm1, vm2, ... all the \
same. Environments (native:, qemu:, ssh://, or names; see `study compare`) are taken in order, round and round: with two \
named, vm1 and vm3 live in the first, vm2 in the second. *N after one says that N machines in a row live in it. Each has a \
test file, disk or folder of its own. Every machine is told to begin at one moment by its own clock; how late it was and how \
well its clock is known is recorded, and a measurement is marked that is not as exact as is needed (a hundredth of the \
measuring time, 50 ms at most).

Examples:
  virtbench study neighbours --workload memory
  virtbench study neighbours --workload cpu:kernel=500ms,runs=3 --vms 1,2,4 --memory 512MiB
  virtbench study neighbours --workload iozone:size=512MiB --vms 1,3,5 --size 2GiB --memory 256MiB
  virtbench study neighbours --workload load:size=4k,read=70,random=100 --vms 1,2,3
  virtbench study neighbours --workload load:size=4k,read=70 --environment ssh://root@a/srv --environment ssh://root@b/srv
  virtbench study neighbours --workload load:size=4k --environment 'metal*4' --environment 'qemu:?vcpus=2' --vms 1,3,5")]
pub struct NeighboursArgs {
    /// What every VM runs
    #[arg(long, value_name = "WORKLOAD", value_parser = read_job, required = false, required_unless_present = "resume")]
    pub workload: NamedJob,
    /// How many VMs run together, one measurement for each number [default: 1 to 7; where several fit the environments, 1
    /// to as many]
    #[arg(long, value_name = "N,...", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub vms: Vec<u32>,
    /// Virtual processors of each VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// Memory of each VM
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// How they run, and where results go
    #[command(flatten)]
    pub sets: SetsArgs,
}

impl NeighboursArgs {
    /// How many VMs run together, where so many have a place in environments.
    pub fn numbers(&self, places: usize) -> Vec<u32> {
        let most = if places > 1 { u32::try_from(places).unwrap_or(MAX_USUAL) } else { MAX_USUAL };
        if self.vms.is_empty() { (1..=most).collect() } else { self.vms.clone() }
    }
}

/// VMs at most, where nothing is said.
const MAX_USUAL: u32 = 7;

/// Whether VMs are held to processors of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PinArg {
    /// Each to as many as it has virtual ones, taking turns ([VirtualFence 2013] pinned its VMs)
    Auto,
    /// The host's scheduler decides
    None,
}

/// How several VMs run at once, and where their results go.
#[derive(Debug, Clone, Args)]
pub struct SetsArgs {
    /// Where the machines live, in order, round and round: [NAME=]URI or a name from virtbench.toml; *N after it for N in a row
    #[arg(long, value_name = "URI|NAME[*N]", conflicts_with_all = ["pin", "adapter", "backing"])]
    pub environment: Vec<String>,
    /// Whether each VM is held to processors of the host
    #[arg(long, value_enum, default_value = "none")]
    pub pin: PinArg,
    /// Repetitions
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Adapter of the VMs' disks, with its settings
    #[arg(long, value_name = "ADAPTER[,SETTING=VALUE...]", default_value = virtbench_lab::DEFAULT_ADAPTER.name)]
    pub adapter: String,
    /// Where the disks' blocks are kept: raw, qcow2, loop, overlay, nbd, or fence with its settings (fence,scheduler=VirtualFence,slow=hdd,fast=ssd,
    /// cache=50%, attach=host, throttle=on|blkio), as for `study adapters`
    #[arg(long, value_name = "NAME", default_value = "raw")]
    pub backing: String,
    /// File system on the disks, where the workload needs one
    #[arg(long, value_name = "ext4|xfs", default_value = "ext4")]
    pub filesystem: String,
    /// Size of each VM's disk
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
    /// Measure for this long, instead of what the workload says [deviation: 20s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub time: Option<u64>,
    /// Run for this long before measuring, instead of what the workload says [deviation: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub ramp: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What runs the guests
    #[command(flatten)]
    pub qemu: QemuArgs,
}

impl SetsArgs {
    /// The same as a study takes it, its machines with so many processors and so much memory, or in these environments.
    ///
    /// # Errors
    /// There is no such adapter or backing.
    pub fn options(
        &self,
        vcpus: u32,
        memory: u64,
        environments: Vec<NamedEnvironment>,
    ) -> Result<ColocationOptions, Failure> {
        let guest = GuestArgs { vcpus, memory, qemu: self.qemu.clone() };
        Ok(ColocationOptions {
            guest: guest.options(),
            setup: Setup::parse(&format!("{}@{}", self.adapter, self.backing))
                .map_err(|error| Failure::new(Kind::Usage, error))?,
            environments,
            size_bytes: self.size,
            filesystem: self.filesystem.clone(),
            target_dir: self.target_dir.clone(),
            pinned: self.pin == PinArg::Auto,
            repetitions: self.repetitions,
            time_ns: self.time,
            ramp_ns: self.ramp,
            seed: self.seed,
        })
    }
}
