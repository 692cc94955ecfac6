//! `virtbench study`

mod adapters;
mod common;
mod native_vs_vm;

use crate::args::StudyCommand;
use crate::exit::Outcome;

/// Runs the experiment.
pub fn execute(command: &StudyCommand) -> Outcome {
    match command {
        StudyCommand::NativeVsVm(args) => native_vs_vm::execute(args),
        StudyCommand::Adapters(args) => adapters::execute(args),
    }
}
