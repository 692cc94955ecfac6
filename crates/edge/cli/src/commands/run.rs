//! `virtbench run`

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, FromArgMatches};
use virtbench_study::Estimate;

use super::study;
use crate::args::study::RunFileArgs;
use crate::args::{self, Arguments, Command};
use crate::claim::Claim;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{say, tell};
use crate::study_file::StudyWords;
use crate::{resume, study_file};

/// Runs the study in a file.
pub fn execute(args: &RunFileArgs) -> Outcome {
    let mut file = study_file::words(&args.study)?;
    let words = &mut file.words;
    if let Some(out) = &args.out {
        words.push(format!("--out={}", out.display()));
    }
    words.extend(
        [(args.resume, "--resume"), (args.json, "--json")]
            .iter()
            .filter(|one| one.0)
            .map(|one| one.1.to_owned()),
    );
    let matches = matches(args, &file)?;
    if args.dry_run {
        return dry_run(&matches).map_err(|failure| located(failure, args, &file));
    }
    let arguments = match resume::restored(&matches)? {
        Some(restored) => restored,
        None => arguments(&matches)?,
    };
    resume::replace(file.words.clone());
    let _claim = Claim::for_command(&arguments.command);
    match &arguments.command {
        Command::Study(command) => study::execute(command).map_err(|failure| located(failure, args, &file)),
        _ => Err(Failure::message(Kind::Usage, format!("{}: not of a study", args.study.display()))),
    }
}

fn matches(args: &RunFileArgs, file: &StudyWords) -> Result<ArgMatches, Failure> {
    args::command().try_get_matches_from(&file.words).map_err(|error| {
        let text = error.to_string();
        let why = text.split("\n\nUsage:").next().unwrap_or(&text).trim_start_matches("error: ");
        let line = line(&error, file).map_or_else(String::new, |line| format!("line {line}: "));
        Failure::message(Kind::Usage, format!("{}: {line}{why}", args.study.display()))
    })
}

/// Where a value stands that an option does not take.
fn line(error: &clap::Error, file: &StudyWords) -> Option<usize> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    let argument = said(ContextKind::InvalidArg)?;
    let name = argument.split(['=', ' ']).next()?.trim_start_matches("--");
    let name = name.trim_matches(['<', '>', '[', ']', '.']).to_lowercase();
    file.line(&name, said(ContextKind::InvalidValue))
}

/// What is wrong with a study, with the file, and with the line of the option that is named.
fn located(failure: Failure, args: &RunFileArgs, file: &StudyWords) -> Failure {
    if failure.kind() != Kind::Usage {
        return failure;
    }
    let why = failure.sentence();
    let options = why.split("--").skip(1).filter_map(|rest| {
        let name: String =
            rest.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '-').collect();
        file.line(&name, None)
    });
    let line = options.into_iter().next().map_or_else(String::new, |line| format!("line {line}: "));
    Failure::message(Kind::Usage, format!("{}: {line}{why}", args.study.display()))
}

fn arguments(matches: &ArgMatches) -> Result<Arguments, Failure> {
    Arguments::from_arg_matches(matches).map_err(|error| Failure::message(Kind::Usage, error.to_string()))
}

/// Prints what would be run as a file, and how long it takes where that is known.
fn dry_run(matches: &ArgMatches) -> Outcome {
    let (estimate, homes): (Option<Estimate>, Option<String>) = match arguments(matches)?.command {
        Command::Study(command) => (Some(study::estimate(&command)?), study::homes(&command)?),
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
