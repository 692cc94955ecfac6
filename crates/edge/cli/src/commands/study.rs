//! `virtbench study`

mod adapters;
mod application;
mod common;
mod compare;
mod desktops;
mod deviation;
mod events;
mod grid_options;
mod native_vs_vm;
mod neighbours;
mod oltp;
mod operations;
mod platform;
mod predictions;
mod sets_summary;
mod systems;
mod tiles;
mod watch;

pub use common::{conclusion, folder_path, study_failure};

use virtbench_study::Estimate;

use crate::args::StudyCommand;
use crate::exit::{Failure, Outcome};

/// What the experiment measures and how long that takes about; nothing where that is known only once it runs.
///
/// # Errors
/// It is impossible.
pub fn estimate(command: &StudyCommand) -> Result<Option<Estimate>, Failure> {
    Ok(match command {
        StudyCommand::NativeVsVm(args) => Some(native_vs_vm::study(args)?.options.estimate(2)),
        StudyCommand::Adapters(args) => {
            let study = adapters::study(args)?;
            Some(study.options.estimate(study.setups.len()))
        }
        StudyCommand::Compare(args) => {
            let study = compare::study(args)?;
            Some(study.options.estimate(study.environments.len()))
        }
        StudyCommand::Neighbours(args) => Some(neighbours::study(args)?.estimate()),
        StudyCommand::Deviation(args) if args.systems.is_empty() => Some(deviation::study(args)?.estimate()),
        StudyCommand::Operations(args) => Some(operations::estimate(args)?),
        StudyCommand::Oltp(args) => Some(oltp::estimate(args)?),
        StudyCommand::Application(args) => Some(application::estimate(args)?),
        StudyCommand::Tiles(args) => Some(tiles::estimate(args)?),
        StudyCommand::Deviation(_) | StudyCommand::Predictions(_) | StudyCommand::Desktops(_) => None,
    })
}

/// Where the machines of the experiment live, in words; nothing where it has none in environments.
///
/// # Errors
/// It is impossible.
pub fn homes(command: &StudyCommand) -> Result<Option<String>, Failure> {
    Ok(match command {
        StudyCommand::Neighbours(args) => neighbours::study(args)?.homes_in_words(),
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
        StudyCommand::Deviation(args) if args.systems.is_empty() => deviation::execute(args),
        StudyCommand::Deviation(args) => systems::execute(args),
        StudyCommand::Predictions(args) => predictions::execute(args),
        StudyCommand::Oltp(args) => oltp::execute(args),
        StudyCommand::Operations(args) => operations::execute(args),
        StudyCommand::Application(args) => application::execute(args),
        StudyCommand::Desktops(args) => desktops::execute(args),
        StudyCommand::Tiles(args) => tiles::execute(args),
    }
}
