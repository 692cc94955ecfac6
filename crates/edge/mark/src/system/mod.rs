//! What marks need to know of the machine: one module for each system.

#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use linux::{began, boot_parts, fill_random, is_on_this_machine, machine_parts};
#[cfg(windows)]
pub(crate) use windows::{began, boot_parts, fill_random, is_on_this_machine, machine_parts};
