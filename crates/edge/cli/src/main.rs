//! The `virtbench` command.

mod args;
mod commands;
mod exit;
mod guests;
mod interrupt;
mod progress;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::Parser;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = interrupt::install().and_then(|()| match arguments.command {
        Command::Load(load) => commands::load::execute(&load),
        Command::Study(study) => commands::study::execute(&study),
        Command::Report(report) => commands::report::execute(&report),
        Command::Doctor(doctor) => commands::doctor::execute(&doctor),
        Command::Man(man) => commands::man::execute(&man),
        Command::Completions { shell } => commands::completions::execute(shell),
    });
    exit::report(done)
}
