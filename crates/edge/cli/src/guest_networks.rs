//! Networks of guests of User Mode Linux that a command starts, which an ordinary user makes.

use virtbench_study::MemberPlace;

use crate::args::appliance::ApplianceCommand;
use crate::args::{Command, StudyCommand};
use crate::exit::{Failure, Kind, Outcome};
use crate::own_networks;

/// Has this process be able to make the networks of guests that a command starts, and starts alone: what runs natively beside them
/// needs root all the same. To be called before there is a second thread.
pub fn allow_for(command: &Command) -> Outcome {
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
    own_networks::allow().map_err(|why| {
        Failure::message(Kind::Environment, format!("--accelerator uml: {why}; run as root, or allow that"))
    })
}
