//! `virtbench study`

mod adapters;
mod common;
mod compare;
mod deviation;
mod grid_options;
mod native_vs_vm;
mod neighbours;
mod predictions;
mod sets_summary;
mod systems;
mod watch;

pub use common::study_failure;

use crate::args::StudyCommand;
use crate::exit::Outcome;

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
    }
}
