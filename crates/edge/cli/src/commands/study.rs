//! `virtbench study`

mod adapters;
#[cfg(feature = "full")]
mod application;
mod common;
mod compare;
#[cfg(feature = "full")]
mod desktops;
#[cfg(feature = "full")]
mod deviation;
mod events;
mod grid_options;
mod native_vs_vm;
mod neighbours;
mod network;
#[cfg(feature = "full")]
mod oltp;
#[cfg(feature = "full")]
mod operations;
#[cfg(feature = "full")]
mod operations_verdict;
#[cfg(feature = "full")]
mod predictions;
mod sets_summary;
#[cfg(feature = "full")]
mod systems;
#[cfg(feature = "full")]
mod tiles;
mod watch;
mod whole_platform;

pub use common::{conclusion, folder_path, study_failure};

use virtbench_study::Estimate;

use crate::args::StudyCommand;
use crate::exit::{Failure, Outcome};

/// What the experiment measures, and about how long that takes where its plan tells.
///
/// # Errors
/// It is impossible.
pub fn estimate(command: &StudyCommand) -> Result<Estimate, Failure> {
    match command {
        StudyCommand::NativeVsVm(args) => native_vs_vm::study(args)?.estimate().map_err(study_failure),
        StudyCommand::Adapters(args) => {
            let study = adapters::study(args)?;
            study.options.estimate(study.setups.len(), study.before()).map_err(study_failure)
        }
        StudyCommand::Compare(args) => compare::study(args)?.estimate().map_err(study_failure),
        StudyCommand::Neighbours(args) => Ok(neighbours::study(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => Ok(deviation::study(args)?.estimate()),
        #[cfg(feature = "full")]
        StudyCommand::Operations(args) => operations::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Oltp(args) => Ok(oltp::estimate(args)),
        #[cfg(feature = "full")]
        StudyCommand::Application(args) => application::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Tiles(args) => tiles::estimate(args),
        StudyCommand::Platform(args) => whole_platform::estimate(args),
        StudyCommand::Network(args) => network::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) => systems::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Predictions(args) => predictions::estimate(args),
        #[cfg(feature = "full")]
        StudyCommand::Desktops(args) => desktops::estimate(args),
    }
}

/// Where the machines of the experiment live, in words; nothing where it has none in environments.
///
/// # Errors
/// It is impossible.
pub fn homes(command: &StudyCommand) -> Result<Option<String>, Failure> {
    Ok(match command {
        StudyCommand::Neighbours(args) => neighbours::study(args)?.homes_in_words(),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => deviation::study(args)?.homes_in_words(),
        _ => None,
    })
}

/// Runs the experiment.
pub fn execute(command: &StudyCommand) -> Outcome {
    match command {
        StudyCommand::NativeVsVm(args) => native_vs_vm::execute(args),
        StudyCommand::Adapters(args) => adapters::execute(args),
        StudyCommand::Compare(args) => compare::execute(args),
        StudyCommand::Neighbours(args) => neighbours::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) if args.systems.is_empty() => deviation::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Deviation(args) => systems::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Predictions(args) => predictions::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Oltp(args) => oltp::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Operations(args) => operations::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Application(args) => application::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Desktops(args) => desktops::execute(args),
        #[cfg(feature = "full")]
        StudyCommand::Tiles(args) => tiles::execute(args),
        StudyCommand::Platform(args) => whole_platform::execute(args),
        StudyCommand::Network(args) => network::execute(args),
    }
}
