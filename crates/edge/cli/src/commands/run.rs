//! `virtbench run`: a study as a file, with its name and its options.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::{Spanned, Value};
use virtbench_runs::read_provenance;
use virtbench_study::{Estimate, read_user_file};

use super::study;
use crate::args::study::RunFileArgs;
use crate::args::{self, Arguments, study_command};
use crate::claim::Claim;
use crate::exit::{Failure, Kind, Outcome};
use crate::resume::{self, is_given, raw};
use crate::say::{say, tell};

/// Runs the study in a file.
pub fn execute(args: &RunFileArgs) -> Outcome {
    let mut file = self::words(&args.study)?;
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
        args::Command::Study(command) => {
            study::execute(command).map_err(|failure| located(failure, args, &file))
        }
        _ => Err(Failure::message(Kind::Usage, format!("{}: not of a study", args.study.display()))),
    }
}

fn matches(args: &RunFileArgs, file: &StudyWords) -> Result<ArgMatches, Failure> {
    args::command().try_get_matches_from(&file.words).map_err(|error| {
        let text = error.to_string();
        let why = text.split("\n\nUsage:").next().unwrap_or(&text).trim_start_matches("error: ");
        let line = place_of(&error, file).map_or_else(String::new, |line| format!("line {line}: "));
        Failure::message(Kind::Usage, format!("{}: {line}{why}", args.study.display()))
    })
}

/// Where a value stands that an option does not take.
fn place_of(error: &clap::Error, file: &StudyWords) -> Option<usize> {
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
        args::Command::Study(command) => (Some(study::estimate(&command)?), study::homes(&command)?),
        _ => (None, None),
    };
    if let Some(homes) = homes {
        tell!("machines: {homes}");
    }
    match estimate {
        Some(estimate) => tell!("{estimate}"),
        None => tell!("how long it takes is known once it runs"),
    }
    say!("{}", write(matches).trim_end());
    Ok(())
}

/// What a run is told anew, and no file says.
const OF_A_RUN: [&str; 3] = ["out", "resume", "json"];

/// Options that may be left out of a command line and have a value.
const WITH_VALUES: [&str; 2] = ["out", "repetitions"];

/// What stands beside a name, with the places where it does.
#[derive(Debug)]
enum Entry {
    One(Value),
    List(Vec<Spanned<Value>>),
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, or a list of them")
            }

            fn visit_str<E>(self, text: &str) -> Result<Entry, E> {
                Ok(Entry::One(Value::from(text)))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Entry, E> {
                Ok(Entry::One(Value::from(number)))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Entry, E> {
                Ok(Entry::One(Value::from(number)))
            }

            fn visit_bool<E>(self, set: bool) -> Result<Entry, E> {
                Ok(Entry::One(Value::from(set)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Entry::List(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Entry, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(table)).map(Entry::One)
            }
        }
        from.deserialize_any(Read)
    }
}

/// A study in a file: its command line, and where each word of it stands.
#[derive(Debug)]
pub struct StudyWords {
    /// The command line.
    pub words: Vec<String>,
    /// For each option, its values as they were written, and their lines.
    lines: BTreeMap<String, Vec<(String, usize)>>,
}

impl StudyWords {
    /// The line of an option's value, or of the option.
    pub fn line(&self, option: &str, value: Option<&str>) -> Option<usize> {
        let lines = self.lines.get(option)?;
        let of_value = lines.iter().find(|(written, _)| Some(written.as_str()) == value);
        of_value.or_else(|| lines.first()).map(|(_, line)| *line)
    }
}

/// The command line of the study in a file, or of a run in a folder.
///
/// # Errors
/// It cannot be read, or names no study or no option of it; with the line.
pub fn words(path: &Path) -> Result<StudyWords, Failure> {
    if path.is_dir() {
        return read_provenance(path)
            .map(|provenance| without(provenance.command, &OF_A_RUN))
            .map(|words| StudyWords { words, lines: BTreeMap::new() })
            .map_err(|error| Failure::new(Kind::Folder, error));
    }
    let usage = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    read_user_file(path).and_then(|text| parse(&text)).map_err(usage)
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

fn parse(text: &str) -> Result<StudyWords, String> {
    let file: BTreeMap<Spanned<String>, Spanned<Entry>> =
        toml::from_str(text).map_err(|error| error.to_string())?;
    let named = file.iter().find(|(name, _)| name.get_ref() == "study").map(|(_, entry)| entry);
    let place = |entry: &Spanned<Entry>| line(text, entry.span().start);
    let name = match named.map(|entry| (entry, entry.get_ref())) {
        Some((_, Entry::One(Value::String(name)))) => name,
        Some((entry, _)) => {
            return Err(format!("line {}: study: the name of one: {}", place(entry), studies().join(", ")));
        }
        None => return Err(format!("missing field `study`: the name of one: {}", studies().join(", "))),
    };
    let study = study_command(name).ok_or_else(|| {
        let line = named.map_or(1, place);
        format!(
            "line {line}: there is no study {name:?}{}: {}",
            nearest(name, studies()),
            studies().join(", ")
        )
    })?;
    let words = vec!["virtbench".to_owned(), "study".to_owned(), name.clone()];
    let mut found = StudyWords { words, lines: BTreeMap::new() };
    for (option, entry) in file.iter().filter(|(option, _)| option.get_ref() != "study") {
        let key_line = line(text, option.span().start);
        let option = option.get_ref().as_str();
        let known = known(&study, option).map_err(|why| {
            format!("line {key_line}: {option} {why} (`virtbench help study {name}` lists them)")
        })?;
        let values: Vec<(&Value, usize)> = match entry.get_ref() {
            Entry::List(values) => {
                values.iter().map(|one| (one.get_ref(), line(text, one.span().start))).collect()
            }
            Entry::One(Value::Boolean(set)) if !known.get_action().takes_values() => {
                if *set {
                    found.words.push(format!("--{option}"));
                    found.lines.insert(option.to_owned(), vec![(String::new(), key_line)]);
                }
                continue;
            }
            Entry::One(value) => vec![(value, place(entry))],
        };
        for (value, line) in values {
            let value = plain(value)
                .ok_or_else(|| format!("line {line}: {option}: a text or number, or a list of them"))?;
            found.lines.entry(option.to_owned()).or_default().push((value.clone(), line));
            found.words.push(if known.is_positional() { value } else { format!("--{option}={value}") });
        }
    }
    Ok(found)
}

/// An option of a study that a file may have, or what is wrong with it.
fn known<'s>(study: &'s Command, option: &str) -> Result<&'s Arg, String> {
    if OF_A_RUN.contains(&option) {
        return Err("is for the command line".into());
    }
    let known = study.get_arguments().find(|argument| name_of(argument) == Some(option));
    known.ok_or_else(|| {
        let names = study.get_arguments().filter_map(name_of).filter(|name| !OF_A_RUN.contains(name));
        format!("is none of its options{}", nearest(option, names.map(str::to_owned).collect()))
    })
}

/// `; did you mean grid?` where a name is nearly like one of these.
fn nearest(written: &str, names: Vec<String>) -> String {
    let near = names.into_iter().map(|name| (strsim::damerau_levenshtein(written, &name), name));
    let near = near.min().filter(|(distance, name)| *distance <= 2 && distance * 2 < name.len());
    near.map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"))
}

/// What an option is called in a file; what has its place on a command line has a name there.
fn name_of(argument: &Arg) -> Option<&str> {
    argument.get_long().or_else(|| argument.is_positional().then(|| argument.get_id().as_str()))
}

fn studies() -> Vec<String> {
    let arguments = Arguments::command();
    let names = arguments.find_subcommand("study").into_iter().flat_map(Command::get_subcommands);
    names.map(|study| study.get_name().to_owned()).collect()
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
    use proptest::prelude::*;

    use super::*;

    const FILE: &str =
        "study = 'compare'\nenvironment = ['a=native:', 'b=native:/srv']\nrepetitions = 5\ngrid = 'quick'\n";

    #[test]
    fn a_file_is_a_command_line_and_back() {
        let words = parse(FILE).unwrap().words;
        assert_eq!(words[1..3], ["study", "compare"]);
        let matches = Arguments::command().try_get_matches_from(&words).unwrap();
        let written = write(&matches);
        let again = Arguments::command().try_get_matches_from(parse(&written).unwrap().words).unwrap();
        assert_eq!(write(&again), written);
        assert!(written.contains("environment = [\"a=native:\", \"b=native:/srv\"]"), "{written}");
        assert_eq!(parse("study = 'native-vs-vm'\n").unwrap().words.len(), 3);
    }

    #[test]
    fn a_file_that_a_study_takes_has_a_name_in_its_own() {
        let words = parse("study = 'application'\nfile = 'redis.toml'\nneighbours = 2\n").unwrap().words;
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
            (
                "# no grid, nor speed\n\nstudy = 'compare'\n# speed is not one\nspeed = 1",
                "line 5: speed is none",
            ),
            ("study = 'compare'\ngird = 'quick'", "line 2: gird is none of its options; did you mean grid?"),
            ("study = 'compair'", "there is no study \"compair\"; did you mean compare?"),
            (
                "study = 'compare'\nenvironment = [\n  'a=native:',\n  [1],\n]",
                "line 4: environment: a text or number",
            ),
            ("study = 3", "line 1: study: the name of one"),
            ("grid = 'quick'", "missing field `study`"),
            ("study = ", "line 1"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn each_value_has_its_line() {
        let found = parse(
            "# size\nstudy = 'compare'\nenvironment = [\n  'a=native:', # b=x\n  'b=x',\n]\nsize = 'much'\n",
        )
        .unwrap();
        assert_eq!(found.line("environment", Some("b=x")), Some(5));
        assert_eq!((found.line("size", Some("much")), found.line("size", None)), (Some(7), Some(7)));
        assert_eq!(found.line("grid", None), None);
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
