//! `virtbench study`: what studies have in common, those of points and of several VMs at once, and `virtbench run`, a study from a file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_study::{
    ApplianceGuests, ColocationOptions, GuestChoice, GuestOptions, GuestsError, NamedEnvironment, NamedJob,
    Setup, WantedAccelerator,
};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::workload::read_job;
use crate::exit::{Failure, Kind};

/// `virtbench study native-vs-vm`
#[derive(Debug, Args)]
#[command(after_help = "\
Native and VM alternate point by point on one test disk, which is made in --target-dir and removed \
afterwards. Points are written to the run folder as they are measured; after a kill or a power cut, \
--resume with the run folder goes on with the missing ones.

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
  virtbench study native-vs-vm --native ssh://root@node/srv --vm 'proxmox:node?template=debian'
  virtbench study native-vs-vm --resume --out mojave")]
pub struct NativeVsVmArgs {
    /// Points to measure: quick (18 points, 3 repetitions, under four minutes), paper (100 points of
    /// three minutes in both environments: ten hours), or a TOML file
    #[arg(long, value_name = "quick|paper|FILE", default_value = "quick")]
    pub grid: String,
    /// How points are measured, and where they go
    #[command(flatten)]
    pub run: RunArgs,
    /// Disk adapter of the guest
    #[arg(long, value_name = "NAME", default_value = virtbench_lab::DEFAULT_ADAPTER.name)]
    pub adapter: String,
    /// The VM, in place of one that is booted here: a URI or a name from virtbench.toml, as study compare has them
    #[arg(long, value_name = "URI|NAME", conflicts_with = "adapter")]
    pub vm: Option<String>,
    /// The machine natively, beside --vm, in place of this host [default: native:]
    #[arg(long, value_name = "URI|NAME", requires = "vm")]
    pub native: Option<String>,
    /// What the guest runs on
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// `virtbench study adapters`
#[derive(Debug, Args)]
#[command(after_help = "\
Guests that differ only in their adapter, its settings or its backing are loaded in turn, point by point. \
Those that wait are stopped; what they cost while they run idle is measured at the beginning and said. \
What a guest found its disk to be (queues, depth, scheduler, write cache) is in run.json, with every \
setting that was not honoured.

Adapters: virtio-blk, virtio-scsi, nvme, pvscsi, lsi53c895a, mptsas1068, megasas, ahci, ide, vhost-user-blk
  (QEMU emulates no BusLogic; the LSI Logic side of [ESX Adapters 2006] is lsi53c895a and mptsas1068)
Settings: queues=N, depth=N, iothread=on|off, cache=none|writeback|writethrough|directsync,
  aio=io_uring|native|threads, packed=on|off
Backings: raw; qcow2[,cluster=SIZE][,prealloc=off|metadata|falloc|full]; loop (a block device);
  overlay[,cluster=SIZE] (qcow2 on a raw backing file); nbd (qemu-storage-daemon on a Unix socket)
  fence[,scheduler=NAME,slow=hdd|file,fast=ssd|file|none,profile=spec|paper-fit,cache=PERCENT,slot=TIME,iops=N]
  (the fence's daemon, over vhost-user-blk for that adapter and over NBD for others)

Examples:
  virtbench study adapters
  virtbench study adapters --adapters virtio-blk,pvscsi,lsi53c895a --grid paper --out lsi
  virtbench study adapters --adapters virtio-blk --backings raw,qcow2,loop,nbd
  virtbench study adapters --adapters virtio-blk --setup virtio-blk,iothread=on --setup nvme@qcow2,cluster=4k")]
pub struct AdaptersArgs {
    /// Adapters to compare, over each of --backings [default: virtio-blk,virtio-scsi,nvme,mptsas1068,
    /// or none if --setup is given]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub adapters: Vec<String>,
    /// Backings to compare, under each of --adapters
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "raw")]
    pub backings: Vec<String>,
    /// One more configuration: ADAPTER[,SETTING=VALUE...][@BACKING[,SETTING=VALUE...]]; may be repeated
    #[arg(long, value_name = "SETUP")]
    pub setup: Vec<String>,
    /// Points to measure: quick (12 points, 3 repetitions, about four minutes with four configurations),
    /// paper ([ESX Adapters 2006]'s 20 points, four minutes each in every configuration), or a TOML file
    #[arg(long, value_name = "quick|paper|FILE", default_value = "quick")]
    pub grid: String,
    /// How points are measured, and where they go
    #[command(flatten)]
    pub run: RunArgs,
    /// Guests kept booted at once [default: as many as fit the free memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub booted: Option<u32>,
    /// What the guests run on
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// `virtbench study compare`
#[derive(Debug, Args)]
#[command(after_help = "\
Environments alternate point by point. Each has a test file of --size, which is made whole before and removed \
afterwards; those of this host share one in --target-dir.

An environment is a URI, a URI with a name of yours (metal=ssh://...), or a name from virtbench.toml, which is looked \
for in the current folder, then in $XDG_CONFIG_HOME/virtbench:
  native:[FOLDER]          this host
  qemu:[FOLDER]?SETTINGS   a guest that is booted for it; settings are disk=SETUP (as study adapters --setup), vcpus=N,
                           memory=SIZE, accelerator=auto|kvm|tcg, kernel=FILE, joined by &
  ssh://[USER@]HOST[:PORT]/FOLDER[?config=FILE][&agent=keep][&device=DISK[&overwrite=allow]]
                           a machine that exists, through the system's ssh and its configuration; /~/FOLDER is in the
                           user's home there. It needs no root and nothing installed. The agent works in FOLDER, ends with
                           the connection, and leaves nothing; with agent=keep it stays in ~/.cache/virtbench there.
                           device=/dev/nvme1n1 (Windows: PhysicalDrive1) loads a whole disk, which needs root or an
                           administrator; nothing is written to it without overwrite=allow
  libvirt+URI[?pool=NAME][&SETTINGS]
                           a guest on a hypervisor that runs already, by a URI of libvirt's with what libvirt takes in it
                           (qemu:///system, qemu+ssh://root@hv/system?socket=...). The guest's kernel and its disk, filled
                           with random data, become volumes of the pool (default) and are removed with it. SETTINGS are
                           those of qemu:, without a backing; adapters are virtio-blk, virtio-scsi, ahci, pvscsi,
                           lsi53c895a, mptsas1068 and megasas. It needs libvirt0 here. A guest that exists is reached by ssh
  proxmox:HOST?template=NAME|NUMBER[&ssh-user=NAME][&ssh-port=N][&ssh-folder=/FOLDER][&ssh-config=FILE]
                           a VM that is cloned from a template of Proxmox VE, reached by ssh at the address that its guest's
                           agent tells, and removed with the run; node=, storage= and the password as for study operations
  openstack:CLOUD?flavor=NAME&image=NAME[&network=NAME][&ssh-user=NAME][&ssh-port=N][&ssh-folder=/FOLDER][&ssh-config=FILE]
                           a server of a cloud of clouds.yaml, made of the image, reached by ssh at its floating or fixed address,
                           and removed with the run

  # virtbench.toml
  [environments]
  metal = \"ssh://root@metal/srv\"
  vm = \"ssh://root@vm/srv\"

Examples:
  virtbench study compare --environment ssh://root@metal/srv --environment ssh://root@vm/srv
  virtbench study compare --environment metal --environment vm --environment 'qemu:?disk=nvme&vcpus=2'
  virtbench study compare --environment native: --environment 'libvirt+qemu+ssh://root@hv/system?pool=fast&vcpus=2'
  virtbench study compare --resume --out two-machines")]
pub struct CompareArgs {
    /// Where the load is applied, the reference first: [NAME=]URI or a name from virtbench.toml; two to eight
    #[arg(long, value_name = "URI|NAME", required_unless_present = "resume")]
    pub environment: Vec<String>,
    /// Points to measure: quick (18 points, 3 repetitions), paper (100 points of three minutes in each), or a TOML file
    #[arg(long, value_name = "quick|paper|FILE", default_value = "quick")]
    pub grid: String,
    /// How points are measured, and where they go
    #[command(flatten)]
    pub run: RunArgs,
    /// What guests run on that do not say so themselves
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// How a study's points are measured, and where they go.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
    /// Size of the test disk
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// I/Os that each worker keeps outstanding ([ESX Disk 2003]: 28, 47 and 64; [ESX Adapters 2006]: 16)
    #[arg(long, value_name = "N", default_value = "16")]
    pub outstanding: u32,
    /// Workers
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: u32,
    /// Repetitions of each point, instead of the grid's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Ramp-up before each point, instead of the grid's
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub ramp: Option<u64>,
    /// Measuring time of each point, instead of the grid's
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub time: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
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
    /// What runs the guest
    #[command(flatten)]
    pub qemu: QemuArgs,
}

impl GuestArgs {
    /// The same as a study takes it.
    pub fn options(&self) -> GuestOptions {
        GuestOptions {
            vcpus: self.vcpus,
            memory_bytes: self.memory,
            kernel: self.qemu.kernel.clone(),
            accelerator: self.qemu.accelerator.wanted(),
        }
    }
}

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

/// Where the run of a study goes, and what is printed of it.
#[derive(Debug, Clone, Args)]
pub struct FolderArgs {
    /// Run folder [default: virtbench-STUDY-DATE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with what is missing of the run in --out, with the options it was started with
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    pub json: bool,
}

/// `virtbench run`
#[derive(Debug, Args)]
#[command(after_help = "\
A study as a file has its name and its options, as `virtbench help study NAME` lists them. An option that may be repeated
has a list, one without a value is true:

  study = \"compare\"
  environment = [\"metal=ssh://root@metal/srv\", \"vm=ssh://root@vm/srv\"]
  grid = \"quick\"
  size = \"4GiB\"
  repetitions = 5

--dry-run prints the study as such a file, also of a run folder, and how long it will take.

Examples:
  virtbench run nightly.toml --out tonight
  virtbench run nightly.toml --dry-run
  virtbench run virtbench-native-vs-vm-2026-11-22 --dry-run > again.toml")]
pub struct RunFileArgs {
    /// Study as a file, or the folder of a run whose study is to be run again
    #[arg(value_name = "FILE|DIR")]
    pub study: PathBuf,
    /// Print what would be run, as a file, and for how long; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run folder [default: the one in the file, else virtbench-STUDY-DATE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the missing points of the run in --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print one JSON object instead of sentences
    #[arg(long)]
    pub json: bool,
}

/// What runs VMs: their kernel, and what executes their instructions.
#[derive(Debug, Clone, Args)]
pub struct QemuArgs {
    /// What executes the VMs' instructions
    #[arg(long, value_enum, default_value = "auto")]
    pub accelerator: AcceleratorArg,
    /// Kernel of the VMs, with its modules in ../lib/modules [default: found by doctor]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
}

impl QemuArgs {
    /// Whether guests of User Mode Linux are named.
    pub fn is_uml(&self) -> bool {
        self.accelerator == AcceleratorArg::Uml
    }

    /// The same as a study takes it.
    pub fn choice(&self) -> GuestChoice {
        GuestChoice { accelerator: self.accelerator.wanted(), kernel: self.kernel.clone() }
    }

    /// What executes their instructions, as a plan names it.
    pub fn accelerator_name(&self) -> String {
        self.accelerator.wanted().name().to_owned()
    }

    /// What VMs with appliances need, with `screen` a screen too. `remark` is told what takes long.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub fn appliance_guests(
        &self,
        screen: bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<ApplianceGuests, GuestsError> {
        ApplianceGuests::find(self.accelerator.wanted(), self.kernel.as_deref(), screen, remark)
    }
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorArg {
    /// KVM if a guest really boots under it, else User Mode Linux where it can have what is measured, else TCG
    Auto,
    /// Hardware virtualization
    Kvm,
    /// Software emulation
    Tcg,
    /// No QEMU: User Mode Linux, a kernel as a process
    Uml,
}

impl AcceleratorArg {
    /// The same as a study takes it.
    pub fn wanted(self) -> WantedAccelerator {
        match self {
            Self::Auto => WantedAccelerator::Auto,
            Self::Kvm => WantedAccelerator::Kvm,
            Self::Tcg => WantedAccelerator::Tcg,
            Self::Uml => WantedAccelerator::Uml,
        }
    }
}
