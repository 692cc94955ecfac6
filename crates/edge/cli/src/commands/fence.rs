//! `virtbench fence`

mod calibrate;
mod evaluate;
mod evaluated;
mod explain;
mod inspect;
mod plan;
mod pools;
mod replay;
mod resize;
mod serve;
mod simulate;
mod status;

use crate::args::fence::FenceCommand;
use crate::exit::Outcome;

/// Does it.
pub fn execute(command: &FenceCommand) -> Outcome {
    match command {
        FenceCommand::Simulate(args) => simulate::execute(args),
        FenceCommand::Plan(args) => plan::execute(args),
        FenceCommand::Format(args) => serve::format(args),
        FenceCommand::Serve(args) => serve::execute(args),
        FenceCommand::Drain(args) => resize::drain_cache(args),
        FenceCommand::Resize(args) => resize::execute(args),
        FenceCommand::Add(args) => resize::add(args),
        FenceCommand::Remove(args) => resize::remove(args),
        FenceCommand::Reslot(args) => resize::reslot(args),
        FenceCommand::Calibrate(args) => calibrate::execute(args),
        FenceCommand::Inspect(args) => inspect::execute(args),
        FenceCommand::Status(args) => status::execute(args),
    }
}
