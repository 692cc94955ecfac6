//! Networks that an ordinary user makes, in a user namespace of this process.

use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_lab::allow_own_networks;
#[cfg(feature = "full")]
use virtbench_study::MemberPlace;

#[cfg(feature = "full")]
use crate::args::appliance::ApplianceCommand;
use crate::args::{Command, StudyCommand};
#[cfg(feature = "full")]
use crate::exit::{Failure, Kind, Outcome};

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

/// Has this process be able to make the networks of guests that a command starts, and starts alone: what runs natively beside them
/// needs root all the same. To be called before there is a second thread.
#[cfg(feature = "full")]
pub fn allow_for_guests(command: &Command) -> Outcome {
    let are_made = match command {
        Command::Appliance(ApplianceCommand::Run(run)) => !run.native && run.qemu.is_uml(),
        Command::Study(StudyCommand::Desktops(study)) => study.are_in_uml(),
        Command::Study(StudyCommand::Tiles(study)) => {
            matches!(study.environment, MemberPlace::Vm) && study.qemu.is_uml()
        }
        _ => false,
    };
    if !are_made {
        return Ok(());
    }
    allow().map_err(|why| {
        Failure::message(Kind::Environment, format!("--accelerator uml: {why}; run as root, or allow that"))
    })
}
