//! Where loads are applied: natively or in a QEMU guest, behind one seam.

mod adapters;
mod cache;
mod child;
mod clock;
mod connection;
mod console;
mod guest;
mod image;
mod initramfs;
mod kernel;
mod memory_file;
mod modules;
mod qemu;
mod unpack;
mod vmlinux;

pub use adapters::{ADAPTERS, Adapter, DEFAULT_ADAPTER, Limits, UnknownAdapter, find_adapter};
pub use cache::cache_directory;
pub use clock::{ClockOffset, RoundTrip, best_of};
pub use connection::{Connection, ConnectionError, Measuring, Stopper};
pub use console::Console;
pub use guest::{Accelerator, Aio, BOOT_LIMIT, Guest, GuestConfig, GuestDisk, GuestError};
pub use image::{AGENT, GuestImage, ImageError};
pub use kernel::{GuestKernel, KernelError, find_kernel};
pub use modules::{ModuleError, ModuleIndex};
pub use qemu::{Qemu, QemuError};
