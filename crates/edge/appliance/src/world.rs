//! Namespaces in which a root is made: what is mounted and started in them is gone with them, however they end.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::geteuid;
use virtbench_lab::{CommandError, run_command};

use crate::error::ApplianceError;
use crate::host::plain_command;

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
