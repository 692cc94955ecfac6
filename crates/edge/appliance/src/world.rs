//! Namespaces in which a root is made: what is mounted and started in them is gone with them; and a shell in a throwaway copy of one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::geteuid;
use virtbench_lab::{CommandError, run_at_terminal, run_command};

use crate::error::ApplianceError;
use crate::host::plain_command;
use crate::store::{Appliance, Store};

const OWN: [&str; 8] =
    ["--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--mount-proc"];

/// This user is root there, and the subordinate ids are everybody else.
const OF_USERS: [&str; 3] = ["--user", "--map-auto", "--map-root-user"];

/// How long a look at whether they can be had may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Who is root in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// The host's root.
    OfRoot,
    /// A user, who is root there alone.
    OfUser,
}

impl World {
    /// The kind that can be had here.
    pub fn find(stop: &AtomicBool) -> Result<Self, ApplianceError> {
        let world = Self::of_this_user();
        let mut command = world.command("true");
        command.current_dir("/");
        match run_command(command, "unshare", LIMIT, stop) {
            Ok(()) => Ok(world),
            Err(CommandError::Failed { said, .. }) => Err(ApplianceError::NoNamespaces { said }),
            Err(other) => Err(other.into()),
        }
    }

    pub fn of_this_user() -> Self {
        if geteuid().is_root() { Self::OfRoot } else { Self::OfUser }
    }

    /// This program as root in namespaces of its own, without a network.
    pub fn command(self, program: &str) -> Command {
        let mut command = plain_command("unshare");
        command.args(OWN);
        if self == Self::OfUser {
            command.args(OF_USERS);
        }
        command.arg("--").arg(program);
        command
    }
}

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
