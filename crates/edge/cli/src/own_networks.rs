//! Networks that an ordinary user makes: for guests of User Mode Linux, and to be measured.

use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_lab::allow_own_networks;
use virtbench_study::MemberPlace;

use crate::args::appliance::ApplianceCommand;
use crate::args::{Command, StudyCommand};
use crate::exit::{Failure, Kind, Outcome};

static IN_OWN_USER_NAMESPACE: AtomicBool = AtomicBool::new(false);

/// Has this process be able to make the networks of guests that a command starts, and starts alone: what runs natively beside them
/// needs root all the same. To be called before there is a second thread.
pub fn allow_for(command: &Command) -> Outcome {
    let are_made = match command {
        // Paths that need none are measured anywhere; the others say what is missing.
        Command::Study(StudyCommand::Network(_)) => {
            IN_OWN_USER_NAMESPACE.store(allow_own_networks().unwrap_or(false), Ordering::Relaxed);
            false
        }
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
    let is_own = allow_own_networks().map_err(|why| {
        Failure::message(Kind::Environment, format!("--accelerator uml: {why}; run as root, or allow that"))
    })?;
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
