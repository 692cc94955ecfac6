//! The command line that goes into a run's record, and `--resume` with the run folder alone: the options are those that it was
//! started with.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches};
use virtbench_record::Provenance;
use virtbench_runs::read_provenance;

#[cfg(feature = "full")]
use crate::args::StudyCommand;
use crate::args::{Arguments, Command, FolderArgs, study_command};
use crate::exit::{Failure, Kind};

/// What may be said anew.
const OWN: [&str; 4] = ["resume", "again", "out", "json"];

/// What may be said anew where nothing is run.
const OWN_OF_AGAIN: &str = "method";

/// The options of the run that is to be resumed, with what was said anew; nothing where nothing is to be
/// resumed, or the folder does not tell, in which case the options given have to say it all.
///
/// # Errors
/// An option is given that differs from the run's.
pub fn restored(matches: &ArgMatches) -> Result<Option<Arguments>, Failure> {
    let Some(("study", study)) = matches.subcommand() else { return Ok(None) };
    let Some((name, given)) = study.subcommand() else { return Ok(None) };
    if !flag(given, "resume") && !flag(given, "again") {
        return Ok(None);
    }
    let Some(out) = given.try_get_one::<PathBuf>("out").ok().flatten() else { return Ok(None) };
    let Some(begun) = begun(out) else { return Ok(None) };
    let absolute = std::path::absolute(out).unwrap_or_else(|_| out.clone());
    let arguments = merged(name, given, &begun.command, &absolute)?;
    if arguments.is_some() {
        // Files that the command line names are where it was given; if that folder is gone, they are looked for here.
        let _ = begun.working_folder.map(std::env::set_current_dir);
    }
    Ok(arguments)
}

/// The options of a command line that began the study `name`, with what is `given` anew.
fn merged(
    name: &str,
    given: &ArgMatches,
    command: &[String],
    out: &Path,
) -> Result<Option<Arguments>, Failure> {
    let Ok(matches) = Arguments::command().try_get_matches_from(command) else { return Ok(None) };
    let Some(stored) = matches.subcommand_matches("study").and_then(|study| study.subcommand_matches(name))
    else {
        return Ok(None);
    };
    refuse_others(name, given, stored, out)?;
    let Ok(mut arguments) = Arguments::from_arg_matches(&matches) else { return Ok(None) };
    say_anew(&mut arguments, given, out);
    Ok(Some(arguments))
}

fn flag(matches: &ArgMatches, name: &str) -> bool {
    matches.try_get_one::<bool>(name).ok().flatten().is_some_and(|set| *set)
}

/// What the run in a folder is about; of a folder with a run for each of several systems, the first.
fn begun(out: &Path) -> Option<Provenance> {
    read_provenance(out).ok().or_else(|| {
        let mut folders: Vec<PathBuf> = fs::read_dir(out).ok()?.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.iter().find_map(|folder| read_provenance(folder).ok())
    })
}

/// Refuses the first option that is given and is not the run's.
fn refuse_others(name: &str, given: &ArgMatches, stored: &ArgMatches, out: &Path) -> Result<(), Failure> {
    let study = study_command(name);
    for option in study.iter().flat_map(clap::Command::get_arguments) {
        let id = option.get_id().as_str();
        let (wanted, was) = (raw(given, id), raw(stored, id));
        let is_own = OWN.contains(&id) || (flag(given, "again") && id == OWN_OF_AGAIN);
        if is_given(given, id) && !is_own && wanted != was {
            let message = format!(
                "{}: the run in {} was started {}: leave the option out, or choose another --out",
                words(option, &wanted),
                out.display(),
                if was.is_empty() {
                    "without it".to_owned()
                } else {
                    format!("with {}", words(option, &was))
                }
            );
            return Err(Failure::message(Kind::Folder, message));
        }
    }
    Ok(())
}

/// Whether an option stands on the command line.
pub fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

/// The values of an option as they were written, or its defaults.
pub fn raw(matches: &ArgMatches, id: &str) -> Vec<OsString> {
    let values = matches.try_get_raw(id).ok().flatten();
    values.map_or_else(Vec::new, |values| values.map(OsString::from).collect())
}

fn words(option: &Arg, values: &[OsString]) -> String {
    let name = option.get_long().map_or_else(|| option.get_id().to_string(), |long| format!("--{long}"));
    let values: Vec<String> = values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if option.get_action().takes_values() { format!("{name} {}", values.join(",")) } else { name }
}

fn say_anew(arguments: &mut Arguments, given: &ArgMatches, out: &Path) {
    let Command::Study(study) = &mut arguments.command else { return };
    #[cfg(feature = "full")]
    if let StudyCommand::Predictions(args) = study {
        args.again = flag(given, "again");
        if args.again && is_given(given, OWN_OF_AGAIN) {
            args.method = given.get_one(OWN_OF_AGAIN).copied().unwrap_or(args.method);
        }
    }
    *study.folder_mut() =
        FolderArgs { out: Some(out.to_owned()), resume: flag(given, "resume"), json: flag(given, "json") };
}

/// The one that a file stands for.
static REPLACED: OnceLock<Vec<String>> = OnceLock::new();

/// What was run: what stands on the command line, or what a file named on it stands for.
pub fn command_line() -> Vec<String> {
    REPLACED.get().cloned().unwrap_or_else(|| std::env::args().collect())
}

/// A file stands for these words. The first such call counts.
pub fn replace(words: Vec<String>) {
    let _ = REPLACED.set(words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::StudyCommand;

    fn restore(stored: &[&str], given: &[&str]) -> Result<Option<Arguments>, String> {
        let words = [&["virtbench", "study", "native-vs-vm", "--resume", "--out", "run"], given].concat();
        let matches = Arguments::command().try_get_matches_from(words).unwrap();
        let (name, given) = matches.subcommand_matches("study").and_then(ArgMatches::subcommand).unwrap();
        let stored: Vec<String> = stored.iter().map(|word| (*word).to_owned()).collect();
        merged(name, given, &stored, Path::new("run")).map_err(|error| error.to_string())
    }

    const STORED: [&str; 8] =
        ["virtbench", "study", "native-vs-vm", "--time", "2s", "--outstanding", "28", "--json"];

    #[test]
    fn the_folder_alone_says_what_to_go_on_with() {
        let restored = restore(&STORED, &[]).unwrap().unwrap();
        let Command::Study(StudyCommand::NativeVsVm(args)) = restored.command else { panic!() };
        assert_eq!(
            (args.run.time, args.run.outstanding, args.run.folder.resume),
            (Some(2_000_000_000), 28, true)
        );
        assert!(!args.run.folder.json && args.run.folder.out.is_some());
        assert!(restore(&STORED, &["--time", "2s"]).unwrap().is_some());
    }

    #[test]
    fn predictions_go_on_and_are_made_again_by_another_method_with_the_folder_alone() {
        let stored =
            ["virtbench", "study", "predictions", "--cases", "c.toml", "--trials", "5", "--out", "x"];
        let stored: Vec<String> = stored.iter().map(|word| (*word).to_owned()).collect();
        let restore = |given: &[&str]| {
            let words = [&["virtbench", "study", "predictions", "--out", "run"], given].concat();
            let matches = Arguments::command().try_get_matches_from(words).unwrap();
            let (name, given) = matches.subcommand_matches("study").and_then(ArgMatches::subcommand).unwrap();
            let restored =
                merged(name, given, &stored, Path::new("run")).map_err(|error| error.to_string())?;
            let Command::Study(StudyCommand::Predictions(args)) = restored.unwrap().command else { panic!() };
            Ok::<_, String>((args.trials, args.folder.resume, args.again, args.method.method().is_some()))
        };
        assert_eq!(restore(&["--resume"]), Ok((5, true, false, false)));
        assert_eq!(restore(&["--again", "--method", "queueing"]), Ok((5, false, true, true)));
        assert!(restore(&["--resume", "--method", "queueing"]).unwrap_err().contains("--method queueing"));
        assert!(restore(&["--resume", "--trials", "6"]).unwrap_err().contains("with --trials 5"));
    }

    #[test]
    fn an_option_that_differs_is_refused_by_name_with_what_it_was() {
        let error = restore(&STORED, &["--outstanding", "16"]).unwrap_err();
        assert!(error.contains("--outstanding 16") && error.contains("with --outstanding 28"), "{error}");
        let error = restore(&STORED, &["--ramp", "1s"]).unwrap_err();
        assert!(error.contains("--ramp 1s") && error.contains("without it"), "{error}");
        // A default counts as said.
        assert!(restore(&STORED, &["--workers", "1"]).unwrap().is_some());
        assert!(restore(&STORED, &["--workers", "2"]).unwrap_err().contains("with --workers 1"));
    }

    #[test]
    fn a_folder_that_does_not_tell_leaves_it_to_the_options() {
        assert!(
            restore(&["virtbench", "study", "native-vs-vm", "--no-longer-known"], &[]).unwrap().is_none()
        );
        assert!(restore(&["virtbench", "study", "adapters"], &[]).unwrap().is_none());
    }
}
