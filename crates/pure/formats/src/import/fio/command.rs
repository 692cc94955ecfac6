//! fio command lines: options of jobs, each after a dash or two, as fio itself reads them.

use super::super::{Findings, ImportError, Location};
use super::ini::{MAX_OPTIONS, Section, Setting};

/// Options of the command itself, which change what is shown or how fio is run on its machine.
const OF_THE_COMMAND: &[&str] = &[
    "alloc-size",
    "append-terse",
    "aux-path",
    "bandwidth-log",
    "debug",
    "eta",
    "eta-interval",
    "eta-newline",
    "inflate-log",
    "max-jobs",
    "minimal",
    "output",
    "output-format",
    "status-interval",
    "terse-version",
    "warnings-fatal",
];
/// Options of jobs that take no value.
const SWITCHES: &[&str] =
    &["exitall", "group_reporting", "new_group", "norandommap", "stonewall", "thread", "time_based"];

/// The sections that a command line stands for: what comes before the first name holds for all jobs.
pub fn sections<'a>(
    line: usize,
    words: &'a [String],
    findings: &mut Findings,
) -> Result<Vec<Section<'a>>, ImportError> {
    let at = |argument| Location { line, argument: Some(argument) };
    let is_fio = |word: &String| word.rsplit(['/', '\\']).next() == Some("fio");
    let named = words.first().is_some_and(is_fio);
    let mut words = (1..).zip(words.iter().skip(usize::from(named)).map(String::as_str)).peekable();
    let mut sections = vec![Section { name: "global", at: at(0), settings: Vec::new() }];
    while let Some((number, word)) = words.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            findings.refuse(
                at(number),
                format!("{word:.60?}: a job file is named as `spec`, not in a command line"),
            );
            continue;
        };
        let (key, mut value) =
            option.split_once('=').map_or((option, None), |(key, value)| (key, Some(value)));
        let plain = key.replace('_', "-");
        let of_the_command = OF_THE_COMMAND.contains(&plain.as_str());
        let takes_value = !SWITCHES.contains(&key)
            && !matches!(plain.as_str(), "minimal" | "append-terse" | "warnings-fatal" | "bandwidth-log");
        if value.is_none() && takes_value {
            value = words.next_if(|(_, next)| !next.starts_with('-')).map(|(_, next)| next);
        }
        if of_the_command {
            findings.leave_out(&format!("--{key:.40}"), line);
            continue;
        }
        if key == "name" {
            let name = value.filter(|name| !name.is_empty()).unwrap_or("fio");
            sections.push(Section { name, at: at(number), settings: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        if section.settings.len() == MAX_OPTIONS {
            return Err(ImportError::TooMany {
                at: at(number),
                what: "options in a section",
                most: MAX_OPTIONS,
            });
        }
        section.settings.push(Setting { key, value, at: at(number) });
    }
    if sections.iter().all(|section| section.name.starts_with("global")) {
        findings.refuse(at(0), "no option `name`: fio has no job to run");
    }
    Ok(sections)
}
