//! The `virtbench` command.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(
    not(feature = "full"),
    allow(dead_code, reason = "some parts serve only the commands that this build leaves out")
)]
#[cfg(feature = "full")]
mod applications;
mod args;
mod claim;
mod commands;
mod exit;
mod first_minute;
mod interrupt;
mod live;
mod log;
mod own_networks;
mod progress;
mod resume;
mod say;
mod text_table;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::FromArgMatches;

fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        return exit::report(Err(first_minute::told()));
    }
    let matches = args::command().get_matches();
    match matches.get_one("progress") {
        Some(args::ProgressArg::Json) => say::to_machines(),
        Some(args::ProgressArg::Lines) => say::in_lines(),
        Some(args::ProgressArg::Text) | None => {}
    }
    if let Err(failure) = log::install(matches.get_count("verbose")) {
        return exit::report(Err(failure));
    }
    if let Err(failure) = args::refuse_left_out(&matches) {
        return exit::report(Err(failure));
    }
    let arguments = match resume::restored(&matches) {
        Ok(Some(restored)) => restored,
        Ok(None) => Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()),
        Err(failure) => return exit::report(Err(failure)),
    };
    own_networks::allow_for(&arguments.command);
    #[cfg(feature = "full")]
    if let Err(failure) = own_networks::allow_for_guests(&arguments.command) {
        return exit::report(Err(failure));
    }
    let _claim = claim::Claim::for_command(&arguments.command);
    let done = interrupt::install().and_then(|()| match arguments.command {
        Command::Load(load) => commands::load::execute(&load, matches.subcommand_matches("load")),
        Command::Workload(workload) => commands::workload::execute(&workload),
        #[cfg(feature = "full")]
        Command::Oltp(oltp) => commands::oltp::execute(&oltp),
        #[cfg(feature = "full")]
        Command::Users(users) => commands::users::execute(&users),
        Command::Saturate(saturate) => commands::saturate::execute(&saturate),
        Command::Surface(surface) => commands::surface::execute(&surface),
        Command::Study(study) => commands::study::execute(&study),
        Command::Run(run) => commands::run::execute(&run),
        Command::Compare(compare) => commands::compare::execute(&compare),
        #[cfg(feature = "full")]
        Command::History(history) => commands::history::execute(&history),
        #[cfg(feature = "full")]
        Command::Papers(papers) => commands::papers::execute(&papers),
        Command::Analyse(analyse) => commands::analyse::execute(&analyse),
        #[cfg(feature = "full")]
        Command::Profile(profile) => commands::profile::execute(&profile),
        #[cfg(feature = "full")]
        Command::Costs(costs) => commands::profile::execute_costs(&costs),
        #[cfg(feature = "full")]
        Command::Predict(predict) => commands::predict::execute(&predict),
        #[cfg(feature = "full")]
        Command::Fence(fence) => commands::fence::execute(&fence),
        #[cfg(feature = "full")]
        Command::Appliance(appliance) => commands::appliance::execute(&appliance),
        #[cfg(feature = "full")]
        Command::Sweep(sweep) => commands::sweep::execute(&sweep),
        Command::Report(report) => commands::report::execute(&report),
        Command::Doctor(doctor) => commands::doctor::execute(&doctor),
        Command::Man(man) => commands::man::execute(&man),
        Command::Completions { shell } => commands::man::completions(shell),
    });
    exit::report(done.and_then(|()| Ok(say::finish()?)))
}
