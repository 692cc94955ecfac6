//! `virtbench run`

use clap::{ArgMatches, FromArgMatches};
use virtbench_study::Estimate;

use super::study;
use crate::args::run::RunFileArgs;
use crate::args::{self, Arguments, Command};
use crate::claim::Claim;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{say, tell};
use crate::{command_line, resume, study_file};

/// Runs the study in a file.
pub fn execute(args: &RunFileArgs) -> Outcome {
    let mut words = study_file::words(&args.study)?;
    if let Some(out) = &args.out {
        words.push(format!("--out={}", out.display()));
    }
    words.extend(
        [(args.resume, "--resume"), (args.json, "--json")]
            .iter()
            .filter(|one| one.0)
            .map(|one| one.1.to_owned()),
    );
    let matches = matches(args, &words)?;
    if args.dry_run {
        return dry_run(&matches);
    }
    let arguments = match resume::restored(&matches)? {
        Some(restored) => restored,
        None => arguments(&matches)?,
    };
    command_line::replace(words);
    let _claim = Claim::for_command(&arguments.command);
    match &arguments.command {
        Command::Study(command) => study::execute(command),
        _ => Err(Failure::message(Kind::Usage, format!("{}: not of a study", args.study.display()))),
    }
}

fn matches(args: &RunFileArgs, words: &[String]) -> Result<ArgMatches, Failure> {
    args::command().try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        let why = text.split("\n\nUsage:").next().unwrap_or(&text).trim_start_matches("error: ");
        Failure::message(Kind::Usage, format!("{}: {why}", args.study.display()))
    })
}

fn arguments(matches: &ArgMatches) -> Result<Arguments, Failure> {
    Arguments::from_arg_matches(matches).map_err(|error| Failure::message(Kind::Usage, error.to_string()))
}

/// Prints what would be run as a file, and how long it takes where that is known.
fn dry_run(matches: &ArgMatches) -> Outcome {
    let (estimate, homes): (Option<Estimate>, Option<String>) = match arguments(matches)?.command {
        Command::Study(command) => (study::estimate(&command)?, study::homes(&command)?),
        _ => (None, None),
    };
    if let Some(homes) = homes {
        tell!("machines: {homes}");
    }
    match estimate {
        Some(estimate) => tell!("{estimate}"),
        None => tell!("how long it takes is known once it runs"),
    }
    say!("{}", study_file::write(matches).trim_end());
    Ok(())
}
