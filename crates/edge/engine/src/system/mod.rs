//! What the engine asks of the operating system besides I/O: its clock, processors, locks and files. One module for each system.

#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use linux::Positioned;
#[cfg(unix)]
pub(crate) use linux::{
    NO_SPACE, boot_identity, injected, lock, memory_name, now_ns, pin_to, sharpen_sleep, sync_folder,
    take_room,
};
#[cfg(windows)]
pub use windows::Positioned;
#[cfg(windows)]
pub(crate) use windows::{
    NO_SPACE, boot_identity, injected, lock, memory_name, now_ns, pin_to, sharpen_sleep, sync_folder,
    take_room,
};

/// How a file is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// By one alone.
    Exclusive,
    /// By any that only look.
    Shared,
}
