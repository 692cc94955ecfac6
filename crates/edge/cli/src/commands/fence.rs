//! `virtbench fence`

mod best_effort;
mod calibrate;
mod cell;
mod drain;
mod evaluate;
mod evaluated;
mod explain;
mod failed;
mod inspect;
mod members;
mod page;
mod parallel;
mod plan;
mod pools;
mod reasons;
mod replay;
mod resize;
mod serve;
mod settings;
mod simulate;
mod status;
mod supervise;
mod table;
mod tally;

use crate::args::fence::FenceCommand;
use crate::exit::Outcome;

/// Does it.
pub fn execute(command: &FenceCommand) -> Outcome {
    match command {
        FenceCommand::Simulate(args) => simulate::execute(args),
        FenceCommand::Plan(args) => plan::execute(args),
        FenceCommand::Format(args) => serve::format(args),
        FenceCommand::Serve(args) => serve::execute(args),
        FenceCommand::Drain(args) => drain::execute(args),
        FenceCommand::Resize(args) => resize::execute(args),
        FenceCommand::Add(args) => members::add(args),
        FenceCommand::Remove(args) => members::remove(args),
        FenceCommand::Reslot(args) => resize::reslot(args),
        FenceCommand::Calibrate(args) => calibrate::execute(args),
        FenceCommand::Inspect(args) => inspect::execute(args),
        FenceCommand::Status(args) => status::execute(args),
    }
}
