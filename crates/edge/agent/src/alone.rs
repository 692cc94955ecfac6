//! The agent in namespaces of its own: what it starts and mounts is seen by nobody else, and ends with it.

use std::error::Error;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Starts this program anew as the first process of its own namespaces of processes, mounts, names and messages, in the network
/// namespace that `network` is, to serve the host on `connection`; waits for its end. Both end with the process that started this one.
///
/// # Errors
/// Root is needed.
pub fn run_alone(connection: RawFd, network: RawFd) -> Result<ExitCode, Box<dyn Error>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: the process that started this program passed the descriptor for it, and it stays open to the end.
    let network = unsafe { BorrowedFd::borrow_raw(network) };
    let wanted = "namespaces of its own cannot be had (root is needed)";
    move_into_link_name_space(network, Some(LinkNameSpaceType::Network))
        .map_err(|error| format!("{wanted}: {error}"))?;
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC;
    // SAFETY: this process has one thread; namespaces of one's own close no descriptor and share no memory.
    unsafe { unshare_unsafe(flags) }.map_err(|error| format!("{wanted}: {error}"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["--fd", &connection.to_string()]);
    // SAFETY: between fork and exec there is one system call.
    unsafe {
        command.pre_exec(|| set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from))
    };
    let status = command.status()?;
    // The parent is to see how the other ended.
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(getpid(), signal);
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
