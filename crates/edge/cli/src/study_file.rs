//! A study as a file: its name and its options.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use serde::Deserialize;
use toml::{Spanned, Value};
use virtbench_study::read_provenance;

use crate::args::{Arguments, study_command};
use crate::exit::{Failure, Kind};
use crate::resume::{is_given, raw};
use crate::small_file;

/// What a run is told anew, and no file says.
const OF_A_RUN: [&str; 3] = ["out", "resume", "json"];
/// Options that may be left out of a command line and have a value.
const WITH_VALUES: [&str; 2] = ["out", "repetitions"];

#[derive(Deserialize)]
struct StudyFile {
    study: Spanned<String>,
    #[serde(flatten)]
    options: BTreeMap<String, Value>,
}

/// The command line of the study in a file, or of a run in a folder.
///
/// # Errors
/// It cannot be read, or names no study or no option of it; with the line.
pub fn words(path: &Path) -> Result<Vec<String>, Failure> {
    if path.is_dir() {
        return read_provenance(path)
            .map(|provenance| without(provenance.command, &OF_A_RUN))
            .map_err(|error| Failure::new(Kind::Folder, error));
    }
    let usage = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    small_file::read(path).and_then(|text| parse(&text)).map_err(usage)
}

/// The command line of one repetition of a study.
pub fn one_repetition(words: Vec<String>) -> Vec<String> {
    let mut words = without(words, &["repetitions"]);
    words.push("--repetitions=1".into());
    words
}

/// A command line without some of its options.
fn without(words: Vec<String>, options: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").map(|name| name.split('=').next().unwrap_or(name).to_owned());
        match name {
            Some(name) if options.contains(&name.as_str()) => {
                if WITH_VALUES.contains(&name.as_str()) && !word.contains('=') {
                    words.next();
                }
            }
            _ => kept.push(word),
        }
    }
    kept
}

fn parse(text: &str) -> Result<Vec<String>, String> {
    let file: StudyFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let name = file.study.get_ref();
    let study = study_command(name).ok_or_else(|| {
        format!("line {}: there is no study {name:?}: {}", line(text, file.study.span().start), studies())
    })?;
    let mut words = vec!["virtbench".to_owned(), "study".to_owned(), name.clone()];
    for (option, value) in &file.options {
        let place = || line(text, text.find(option.as_str()).unwrap_or(0));
        let known = study.get_arguments().find(|argument| name_of(argument) == Some(option));
        let Some(known) = known.filter(|_| !OF_A_RUN.contains(&option.as_str())) else {
            let why = if OF_A_RUN.contains(&option.as_str()) {
                "is for the command line"
            } else {
                "is none of its options"
            };
            return Err(format!(
                "line {}: {option} {why} (`virtbench help study {name}` lists them)",
                place()
            ));
        };
        let values = match value {
            Value::Array(values) => values.iter().map(plain).collect(),
            Value::Boolean(set) if !known.get_action().takes_values() => {
                if *set {
                    words.push(format!("--{option}"));
                }
                continue;
            }
            value => vec![plain(value)],
        };
        for value in values {
            let value = value
                .ok_or_else(|| format!("line {}: {option}: a text or number, or a list of them", place()))?;
            words.push(if known.is_positional() { value } else { format!("--{option}={value}") });
        }
    }
    Ok(words)
}

/// What an option is called in a file; what has its place on a command line has a name there.
fn name_of(argument: &Arg) -> Option<&str> {
    argument.get_long().or_else(|| argument.is_positional().then(|| argument.get_id().as_str()))
}

fn studies() -> String {
    let arguments = Arguments::command();
    let names = arguments.find_subcommand("study").into_iter().flat_map(Command::get_subcommands);
    names.map(Command::get_name).collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The line, from 1, of a place in a text.
fn line(text: &str, place: usize) -> usize {
    text.as_bytes().iter().take(place).filter(|byte| **byte == b'\n').count() + 1
}

/// The study of a command line as a file: every option that was given.
pub fn write(matches: &ArgMatches) -> String {
    let Some((name, given)) = matches.subcommand_matches("study").and_then(ArgMatches::subcommand) else {
        return String::new();
    };
    let study = study_command(name);
    let mut text = format!("study = {}\n", Value::from(name));
    for option in study.iter().flat_map(Command::get_arguments) {
        let id = option.get_id().as_str();
        let said = is_given(given, id);
        let Some(long) = name_of(option).filter(|long| said && !OF_A_RUN.contains(long)) else { continue };
        let raw = raw(given, id).into_iter();
        let values: Vec<Value> = raw.map(|value| Value::from(value.to_string_lossy().into_owned())).collect();
        let value = match (option.get_action(), values.as_slice()) {
            (ArgAction::SetTrue, _) => Value::from(true),
            (_, [only]) => only.clone(),
            _ => Value::Array(values),
        };
        let _ = writeln!(text, "{long} = {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str =
        "study = 'compare'\nenvironment = ['a=native:', 'b=native:/srv']\nrepetitions = 5\ngrid = 'quick'\n";

    #[test]
    fn a_file_is_a_command_line_and_back() {
        let words = parse(FILE).unwrap();
        assert_eq!(words[1..3], ["study", "compare"]);
        let matches = Arguments::command().try_get_matches_from(&words).unwrap();
        let written = write(&matches);
        let again = Arguments::command().try_get_matches_from(parse(&written).unwrap()).unwrap();
        assert_eq!(write(&again), written);
        assert!(written.contains("environment = [\"a=native:\", \"b=native:/srv\"]"), "{written}");
        assert_eq!(parse("study = 'native-vs-vm'\n").unwrap().len(), 3);
    }

    #[test]
    fn a_file_that_a_study_takes_has_a_name_in_its_own() {
        let words = parse("study = 'application'\nfile = 'redis.toml'\nneighbours = 2\n").unwrap();
        assert_eq!(words[3..], ["redis.toml", "--neighbours=2"]);
        let matches = Arguments::command().try_get_matches_from(&words).unwrap();
        assert!(write(&matches).contains("file = \"redis.toml\""));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("study = 'weather'", "line 1: there is no study \"weather\""),
            ("study = 'compare'\nspeed = 1", "line 2: speed is none of its options"),
            ("study = 'compare'\nout = 'x'", "line 2: out is for the command line"),
            ("study = 'compare'\nsize = { a = 1 }", "line 2: size: a text or number"),
            ("grid = 'quick'", "missing field `study`"),
            ("study = ", "line 1"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_run_was_told_for_itself_is_left_out() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let kept =
            without(words("virtbench study compare --out a --json --grid quick --out=b --resume"), &OF_A_RUN);
        assert_eq!(kept, words("virtbench study compare --grid quick"));
        let once =
            one_repetition(words("virtbench study compare --repetitions 5 --grid quick --repetitions=2"));
        assert_eq!(once, words("virtbench study compare --grid quick --repetitions=1"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(study = 'compare'\n)?[a-z='\\[\\] 0-9\n]{0,60}") {
            let _ = parse(&text);
        }
    }
}
