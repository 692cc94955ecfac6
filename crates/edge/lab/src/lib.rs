//! Where loads are applied: natively or in a QEMU guest, behind one seam.
//!
//! An [`Environment`] starts [`Machine`]s; [`measure_together`] gives them
//! their jobs, loads or classic workloads, at one moment.
//! [`Native`] runs the embedded agent as a child, [`Vm`] boots it as a QEMU guest's init. What a
//! guest needs is found by [`Qemu::find`], [`find_kernel`] and [`choose_accelerator`].

mod accelerator;
mod adapters;
mod cache;
mod child;
mod clock;
mod connection;
mod console;
mod disk;
mod doctor;
mod error;
mod filesystem;
mod guest;
mod host;
mod host_cpu;
mod image;
mod initramfs;
mod kernel;
mod machine;
mod measure;
mod memory_file;
mod modules;
mod native;
mod process;
mod qemu;
mod unpack;
mod vm;
mod vmlinux;

pub use accelerator::{AcceleratorChoice, KVM_LIMIT, choose_accelerator, known_accelerator};
pub use adapters::{ADAPTERS, Adapter, DEFAULT_ADAPTER, Limits, UnknownAdapter, find_adapter};
pub use cache::cache_directory;
pub use clock::{ClockOffset, RoundTrip, best_of};
pub use connection::{Connection, ConnectionError, Measuring, Stopper};
pub use console::Console;
pub use disk::disk_facts;
pub use doctor::{Check, Status, examine_host};
pub use error::LabError;
pub use filesystem::{Filesystem, FilesystemError, make_filesystem};
pub use guest::{Accelerator, Aio, BOOT_LIMIT, Guest, GuestConfig, GuestDisk};
pub use host::host_facts;
pub use host_cpu::CpuSample;
pub use image::{AGENT, GuestImage, ImageError};
pub use kernel::{GuestKernel, KernelError, find_kernel};
pub use machine::{Environment, Machine};
pub use measure::{Assignment, Kind, MeasuredTogether, TimeLimits, measure, measure_together};
pub use modules::{ModuleError, ModuleIndex};
pub use native::Native;
pub use process::MachineError;
pub use qemu::{Qemu, QemuError};
pub use vm::Vm;
