//! A shell in a throwaway copy of an appliance's root.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::AtomicBool;

use rustix::process::geteuid;
use virtbench_lab::run_at_terminal;

use crate::appliance::Appliance;
use crate::error::ApplianceError;
use crate::host::plain_command;
use crate::store::Store;

/// It is process 1 of its namespaces, and the mounts are its own.
const SCRIPT: &str = include_str!("shell.sh");
/// What a shell says of a process that a signal ended.
const BY_SIGNAL: i32 = 128;

/// Runs a command, or a shell where there is none, in a copy of the appliance's root that is gone afterwards. It has the terminal,
/// the host's network, and processes and mounts of its own. Gives its exit code; 125 is that of a copy that could not be made.
///
/// # Errors
/// It needs root. It cannot be started, or `stop` was set.
pub fn shell(
    store: &Store,
    appliance: &Appliance,
    command: &[OsString],
    stop: &AtomicBool,
) -> Result<i32, ApplianceError> {
    if !geteuid().is_root() {
        return Err(ApplianceError::NeedsRoot("a shell in an appliance"));
    }
    let place = store.folder().join("shell");
    std::fs::create_dir_all(&place).map_err(ApplianceError::file("make", &place))?;
    let mut process = plain_command("unshare");
    process.args([
        "--mount",
        "--pid",
        "--uts",
        "--ipc",
        "--fork",
        "--kill-child",
        "--",
        "sh",
        "-c",
        SCRIPT,
        "sh",
    ]);
    process.arg(appliance.image()).arg(&place).arg(&appliance.manifest.name).args(command);
    let status = run_at_terminal(process, stop).map_err(|error| match error.kind() {
        ErrorKind::Interrupted => ApplianceError::Stopped,
        _ => ApplianceError::file("start a shell in", &place)(error),
    })?;
    Ok(status.code().unwrap_or_else(|| BY_SIGNAL + status.signal().unwrap_or_default()))
}
