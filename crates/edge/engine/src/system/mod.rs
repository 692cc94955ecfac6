//! What the engine asks of the operating system besides I/O: its clock, processors, locks and files. One module for each system.

#[cfg(unix)]
mod linux;
mod lock_kind;
#[cfg(any(windows, test))]
mod processor_groups;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use linux as own;
#[cfg(windows)]
use windows as own;

pub(crate) use lock_kind::Lock;
pub use own::Positioned;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use own::is_user_mode_linux;
pub(crate) use own::{
    NO_SPACE, boot_identity, drop_cache, injected, lock, memory_name, now_ns, pin_to, sharpen_sleep,
    sync_folder, take_room,
};
