//! `virtbench study`

#[cfg(feature = "full")]
mod appliances;
#[cfg(feature = "full")]
mod desktops;
#[cfg(feature = "full")]
pub mod deviation;
#[cfg(feature = "full")]
mod operations;
mod points;
#[cfg(feature = "full")]
mod predictions;
mod sets;
#[cfg(feature = "full")]
mod tiles;

use virtbench_report::takeaway;
use virtbench_study::{Estimate, Experiment, NetworkOptions, PlatformStudy, has_vhost};

use crate::args::StudyCommand;
use crate::args::platform_study::{NetworkStudyArgs, PlatformStudyArgs};
#[cfg(feature = "full")]
use crate::commands::study_runs::systems;
use crate::commands::study_runs::{self, study_failure};
use crate::exit::{Failure, Outcome};

/// What the experiment measures, and about how long that takes where its plan tells.
///
/// # Errors
/// It is impossible.
pub fn estimate(command: &StudyCommand) -> Result<Estimate, Failure> {
    match command {
        StudyCommand::NativeVsVm(args) => points::native_vs_vm(args)?.estimate().map_err(study_failure),
        StudyCommand::Adapters(args) => {
            let study = points::adapters(args)?;
            study.options.estimate(study.setups.len(), study.before()).map_err(study_failure)
        }
        StudyCommand::Compare(args) => points::compare(args)?.estimate().map_err(study_failure),
        StudyCommand::Neighbours(args) => Ok(sets::neighbours(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => {
            Ok(deviation::deviation(args)?.estimate())
        }
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) => systems::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Predictions(args) => predictions::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Operations(args) => Ok(operations::options(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Oltp(args) => Ok(appliances::oltp(args).estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Application(args) => Ok(appliances::application(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Desktops(args) => Ok(desktops::options(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Tiles(args) => Ok(tiles::options(args)?.estimate()),
        StudyCommand::Platform(args) => Ok(platform(args)?.estimate()),
        StudyCommand::Network(args) => Ok(network(args)?.estimate()),
    }
}

/// Where the machines of the experiment live, in words; nothing where it has none in environments.
///
/// # Errors
/// It is impossible.
pub fn homes(command: &StudyCommand) -> Result<Option<String>, Failure> {
    Ok(match command {
        StudyCommand::Neighbours(args) => sets::neighbours(args)?.homes_in_words(),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => {
            deviation::deviation(args)?.homes_in_words()
        }
        _ => None,
    })
}

/// Runs the experiment.
pub fn execute(command: &StudyCommand) -> Outcome {
    match command {
        StudyCommand::NativeVsVm(args) => {
            let study = points::native_vs_vm(args)?;
            points::execute("native-vs-vm", &args.run.folder, |run| study.run(run))
        }
        StudyCommand::Adapters(args) => {
            let study = points::adapters(args)?;
            points::execute("adapters", &args.run.folder, |run| study.run(run))
        }
        StudyCommand::Compare(args) => {
            let study = points::compare(args)?;
            points::execute("compare", &args.run.folder, |run| study.run(run))
        }
        StudyCommand::Neighbours(args) => {
            sets::execute("neighbours", &args.sets.folder, &sets::neighbours(args)?)
        }
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => {
            sets::execute("deviation", &args.sets.folder, &deviation::deviation(args)?)
        }
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) => systems::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Predictions(args) => predictions::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Operations(args) => operations::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Oltp(args) => study_runs::execute(&appliances::oltp(args), &args.folder),
        #[cfg(feature = "full")]
        StudyCommand::Application(args) => study_runs::execute(&appliances::application(args)?, &args.folder),
        #[cfg(feature = "full")]
        StudyCommand::Desktops(args) => study_runs::execute(&desktops::options(args)?, &args.folder),
        #[cfg(feature = "full")]
        StudyCommand::Tiles(args) => study_runs::execute(&tiles::options(args)?, &args.folder),
        StudyCommand::Platform(args) => study_runs::execute(&platform(args)?, &args.folder),
        StudyCommand::Network(args) => study_runs::execute(&network(args)?, &args.folder),
    }
}

/// The other studies, and a score over them.
fn platform(args: &PlatformStudyArgs) -> Result<PlatformStudy, Failure> {
    let sentence = |provenance: &_, records: &_| takeaway(provenance, records).headline;
    let plan = args.options().plan().map_err(study_failure)?;
    Ok(PlatformStudy::new(plan, std::env::current_exe()?, sentence))
}

/// Paths natively, to guests and between guests.
fn network(args: &NetworkStudyArgs) -> Result<NetworkOptions, Failure> {
    Ok(NetworkOptions { plan: args.plan(has_vhost())?, guests: args.qemu.choice() })
}
