//! What a study needs of this host beside QEMU, devices, memory and programs, looked for before anything is made.

use std::path::Path;

use virtbench_lab::{
    LoopDevice, available_memory_bytes, check_io_limits, find_qemu_img, find_storage_daemon,
};

use crate::disks::backing::Backing;
use crate::fence::check_host_devices;
use crate::setup::Setup;
use crate::study_error::StudyError;

/// What QEMU needs beside a guest's memory, in bytes: measured, 60 to 90 MiB under TCG.
const QEMU_BYTES: u64 = 128 << 20;

/// Looks for the programs and devices that configurations need.
///
/// # Errors
/// The first that is missing, as [`StudyError::Environment`].
pub(crate) fn check_tools(setups: &[Setup]) -> Result<(), StudyError> {
    let missing = |error: Box<dyn std::error::Error + Send + Sync>| StudyError::Environment(error);
    if setups.iter().any(Setup::is_served) {
        find_storage_daemon().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_qcow2) {
        find_qemu_img().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(|setup| setup.backing == Backing::Loop) {
        LoopDevice::check().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_on_host) {
        check_host_devices().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_limited_by_host) {
        check_io_limits().map_err(|error| missing(error.into()))?;
    }
    Ok(())
}

/// How many guests of this memory, in bytes, fit what is free.
pub(crate) fn guests_that_fit(memory_bytes: u64, free_bytes: u64) -> u64 {
    free_bytes / memory_bytes.saturating_add(QEMU_BYTES)
}

/// What so many guests of this memory need, and what is available, in bytes, where that is not enough.
pub(crate) fn lacking_memory(guests: usize, memory_bytes: u64) -> Option<(u64, u64)> {
    let free_bytes = available_memory_bytes()?;
    let needed_bytes = memory_bytes.saturating_add(QEMU_BYTES).saturating_mul(guests as u64);
    (needed_bytes > free_bytes).then_some((needed_bytes, free_bytes))
}

/// Whether a program can be started by this name.
#[must_use]
pub fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if name.contains('/') {
        Path::new(name).is_file()
    } else {
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }
}
