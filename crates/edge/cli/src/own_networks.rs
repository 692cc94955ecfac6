//! Networks that an ordinary user makes, in a user namespace of this process.

use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_lab::allow_own_networks;

use crate::args::{Command, StudyCommand};

static IN_OWN_USER_NAMESPACE: AtomicBool = AtomicBool::new(false);

/// Has this process be able to make the networks that a command measures. Paths that need none are measured anywhere; the others say what
/// is missing. To be called before there is a second thread.
pub fn allow_for(command: &Command) {
    if matches!(command, Command::Study(StudyCommand::Network(_))) {
        let _ = allow();
    }
}

/// Has this process be able to make networks.
///
/// # Errors
/// The kernel forbids it, in words.
pub fn allow() -> Result<(), String> {
    let is_own = allow_own_networks()?;
    IN_OWN_USER_NAMESPACE.store(is_own, Ordering::Relaxed);
    Ok(())
}

/// The words by which the user runs a command in a network that this process has at `path`.
pub fn command_within(path: &str) -> String {
    if IN_OWN_USER_NAMESPACE.load(Ordering::Relaxed) {
        let user = format!("--preserve-credentials --user=/proc/{}/ns/user", std::process::id());
        return format!("nsenter {user} --net={path}");
    }
    format!("nsenter --net={path}")
}
