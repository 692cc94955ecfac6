//! The `virtbench` command.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod appliance_failure;
mod applications;
mod args;
mod chart;
mod claim;
mod command_line;
mod commands;
mod company;
mod exit;
mod flags;
mod guests;
mod interrupt;
mod live;
mod log;
mod password_file;
mod progress;
mod recipes;
mod resume;
mod say;
mod small_file;
mod study_file;
mod text_table;
mod watched;
mod xdg;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::FromArgMatches;

fn main() -> ExitCode {
    let matches = args::command().get_matches();
    if matches.get_one("progress") == Some(&args::ProgressArg::Json) {
        say::to_machines();
    }
    if let Err(failure) = log::install(matches.get_count("verbose")) {
        return exit::report(Err(failure));
    }
    let arguments = match resume::restored(&matches) {
        Ok(Some(restored)) => restored,
        Ok(None) => Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()),
        Err(failure) => return exit::report(Err(failure)),
    };
    let _claim = claim::Claim::for_command(&arguments.command);
    let done = interrupt::install().and_then(|()| match arguments.command {
        Command::Load(load) => commands::load::execute(&load, matches.subcommand_matches("load")),
        Command::Workload(workload) => commands::workload::execute(&workload),
        Command::Oltp(oltp) => commands::oltp::execute(&oltp),
        Command::Users(users) => commands::users::execute(&users),
        Command::Saturate(saturate) => commands::saturate::execute(&saturate),
        Command::Surface(surface) => commands::surface::execute(&surface),
        Command::Study(study) => commands::study::execute(&study),
        Command::Run(run) => commands::run::execute(&run),
        Command::Compare(compare) => commands::compare::execute(&compare),
        Command::History(history) => commands::history::execute(&history),
        Command::Analyse(analyse) => commands::analyse::execute(&analyse),
        Command::Profile(profile) => commands::profile::execute(&profile),
        Command::Costs(costs) => commands::costs::execute(&costs),
        Command::Predict(predict) => commands::predict::execute(&predict),
        Command::Fence(fence) => commands::fence::execute(&fence),
        Command::Appliance(appliance) => commands::appliance::execute(&appliance),
        Command::Report(report) => commands::report::execute(&report),
        Command::Doctor(doctor) => commands::doctor::execute(&doctor),
        Command::Man(man) => commands::man::execute(&man),
        Command::Completions { shell } => commands::completions::execute(shell),
    });
    exit::report(done.and_then(|()| Ok(say::finish()?)))
}
