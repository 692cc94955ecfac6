//! Where loads are applied: natively, in a guest of QEMU's or of a hypervisor's, or on an existing machine, behind one seam.
//!
//! An [`Environment`] starts [`Machine`]s; [`measure_together`] gives them
//! their jobs, loads or classic workloads, at one moment.
//! [`Native`] runs the embedded agent as a child, [`Vm`] boots it as a QEMU guest's init. What a
//! guest needs is found by [`Qemu::find`], [`find_kernel`] and [`choose_accelerator`].

mod accelerator;
mod adapters;
mod appliance;
mod cache;
mod carried_files;
mod child;
mod clock;
mod command;
mod connection;
mod cpu_times;
mod delayed_disk;
mod descriptors;
mod doctor;
mod energy;
mod filesystem;
mod guest;
mod guest_disk;
mod guest_network;
mod image;
mod io_limit;
mod kernel;
mod libvirt;
mod machine;
mod measure;
mod modules;
mod native;
mod network_path;
mod process;
mod qemu;
mod qemu_tools;
mod qmp;
mod remote;
mod start_folder;
mod translator;
mod uml;
mod vm;

pub use accelerator::{
    AcceleratorChoice, KVM_LIMIT, choose_accelerator, force_kvm, known_accelerator, probe_kvm,
};
pub use adapters::{
    ADAPTERS, Accepts, Adapter, Aio, Cache, DEFAULT_ADAPTER, DiskSettings, Limits, SettingError, Transport,
    UnknownAdapter, find_adapter, served_adapter,
};
pub use appliance::{
    ApplianceError, ApplianceSpec, GuestPlace, Network, NetworkNamespace, Place, Reach, RunningAppliance,
    TierLinks, UmlPlace, appliance_guest_facts, measure_path,
};
pub use cache::cache_directory;
pub use carried_files::{CarriedFile, CarriedFilesError, pack};
pub use child::stop_starts_on;
pub use clock::{ClockOffset, RoundTrip, best_of};
pub use command::{
    CommandError, run_at_terminal, run_command, run_command_followed, run_command_interrupted, run_watched,
};
pub use connection::{Connection, ConnectionError, Measuring, Stopper};
pub use cpu_times::{FarTimes, Observed};
pub use delayed_disk::DelayedDisk;
pub use descriptors::{DESCRIPTORS_EACH, TooFewDescriptors, require_descriptors};
pub use doctor::{Check, Status, examine_host};
pub use energy::{EnergySource, NoEnergy, find_energy, open_energy};
pub use filesystem::{
    Filesystem, FilesystemError, OwnFilesystem, OwnFilesystemError, fill_holes, make_filesystem,
    make_filesystem_with, see_alone,
};
pub use guest::{Accelerator, BOOT_LIMIT, Guest, GuestConfig};
pub use guest_disk::{GuestDisk, ImageFormat};
pub use guest_network::{CableEnd, GuestNetwork, Tap};
pub use image::{GuestImage, ImageError};
pub use io_limit::{IoLimitError, IoLimits, check_io_limits};
pub use kernel::{GuestKernel, KernelError, bootable, find_kernel};
pub use libvirt::{
    BEAT, Beat, BootFiles, DomainNetwork, Keeper, Label, LeftRun, Libvirt, LibvirtAddress,
    LibvirtAddressError, LibvirtAppliances, LibvirtGuest, MADE_NAMESPACE, MADE_PREFIX, Made, MarkedThing,
    Noise, NotByLibvirt, Purpose, SILENT, Sign, Standing, SweepOf, boot_files_for, check_disk, check_free,
    connect_to, connect_with_pool, folder_of, new_uuid, now_s, remove_made, runs_on,
};
pub use machine::{Environment, LabError, Machine, OnProgress};
pub use measure::{
    Assignment, Kind, MeasuredTogether, TimeLimits, measure, measure_observed, measure_together, observe,
};
pub use modules::{ModuleError, ModuleIndex};
pub use native::Native;
pub use network_path::{EndProcessors, NetworkPath, PathGuest, PathKind, TrafficMeasured, vhost_device};
pub use process::MachineError;
pub use qemu::{KvmCpu, Qemu, QemuError};
pub use qemu_tools::{
    ImageMakingError, NoStorageDaemon, Preallocation, Qcow2, find_qemu_img, find_storage_daemon,
};
pub use remote::{
    AddressError, LoopbackKeys, LoopbackSshd, Ssh, SshAddress, SshAppliances, SshHost, check_ssh_host,
};
pub use translator::Translator;
pub use uml::{
    Uml, UmlConfig, UmlDisk, UmlDiskKind, UmlError, UmlGuest, UmlImage, UmlInterface, UmlKernel, probe_uml,
    uml_processor,
};
pub use virtbench_agent::enclosure::{
    GroupError, LoopCache, LoopDevice, LoopError, allow_own_networks, processors_in_turn, usable_processors,
};
pub use virtbench_agent::protocol::appliance::ServiceEnd;
pub use virtbench_agent::protocol::network::{NetworkOutcome, Traffic};
pub use virtbench_agent::protocol::{Greeting, TargetRef};
pub use virtbench_agent::{Console, HERE, STAY};
pub use virtbench_host::{
    CpuSample, NetworkSample, NumaSample, available_memory_bytes, crossing_cost, disk_busy_ms, disk_facts,
    free_bytes, host_facts, listens_at, mean_frequency_mhz, memory_bytes,
};
/// Whether libvirt's library is here.
pub use virtbench_libvirt::load as load_libvirt;
pub use vm::Vm;
