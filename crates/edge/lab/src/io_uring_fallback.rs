//! What to do where QEMU cannot have io_uring.

use crate::adapters::DiskSettings;
use crate::process::MachineError;

/// A QEMU built without io_uring, or a host that forbids it, is done without: if `error` is because of that, `settings` are
/// changed, and what is to be noted of it is returned.
pub(crate) fn io_without_uring(error: &MachineError, settings: &mut DiskSettings) -> Option<String> {
    let MachineError::Ended { console, .. } = error else { return None };
    let complaint = console.iter().find(|line| line.contains("io_uring"))?;
    let aio = settings.replace_io_uring()?;
    Some(format!("aio={} instead of io_uring, as QEMU said: {complaint}", aio.name()))
}
