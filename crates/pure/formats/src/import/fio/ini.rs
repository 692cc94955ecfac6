//! The lines of a job file: sections, settings, comments.

use super::super::{Findings, ImportError, Location, MAX_FILE_BYTES, Surroundings};

/// The most options that can apply to one job.
pub const MAX_OPTIONS: usize = 500;

/// The most files that are within one another.
const MAX_INCLUDES: usize = 8;

/// The most sections, global ones included.
const MAX_SECTIONS: usize = 1024;

/// `option=value`, or `option` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The option.
    pub key: &'a str,
    /// Its value.
    pub value: Option<&'a str>,
    /// Where it stands.
    pub at: Location,
}

/// A section with its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Where it begins.
    pub at: Location,
    /// Its settings.
    pub settings: Vec<Setting<'a>>,
}

/// The lines of a job file with those of the files that it includes; what comes from another file stands
/// where it is included.
pub fn lines(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<(usize, String)>, ImportError> {
    let mut all = Vec::new();
    let mut bytes = 0;
    for (line, raw) in (1..).zip(text.lines()) {
        add(raw, line, MAX_INCLUDES, surroundings, findings, (&mut all, &mut bytes))?;
    }
    Ok(all)
}

/// Adds a line, or all those of a file that it includes, down to so many files within one another.
fn add(
    raw: &str,
    line: usize,
    depth: usize,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
    (all, bytes): (&mut Vec<(usize, String)>, &mut usize),
) -> Result<(), ImportError> {
    let at = Location::line(line);
    // `;` and `#` begin a comment wherever they stand, as in fio.
    let content = raw.split([';', '#']).next().unwrap_or("").trim();
    *bytes += content.len();
    if *bytes > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge { bytes: *bytes });
    }
    let Some(name) = content.strip_prefix("include ").map(str::trim) else {
        if !content.is_empty() {
            all.push((line, content.to_owned()));
        }
        return Ok(());
    };
    if depth == 0 {
        findings.refuse(at, format!("include {name:.60}: more than {MAX_INCLUDES} files within one another"));
        return Ok(());
    }
    match (surroundings.text_of)(name) {
        Ok(text) => text
            .lines()
            .try_for_each(|raw| add(raw, line, depth - 1, surroundings, findings, (&mut *all, &mut *bytes))),
        Err(why) => {
            findings.refuse(at, format!("include {name:.60}: {why}"));
            Ok(())
        }
    }
}

/// The sections of these lines.
pub fn sections<'a>(
    lines: &'a [(usize, String)],
    findings: &mut Findings,
) -> Result<Vec<Section<'a>>, ImportError> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for (line, content) in lines {
        let at = Location::line(*line);
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.unwrap_or_else(|| {
                findings.refuse(at, "a section is written [name] on a line of its own");
                rest
            });
            if sections.len() == MAX_SECTIONS {
                return Err(ImportError::TooMany { at, what: "sections", most: MAX_SECTIONS });
            }
            sections.push(Section { name, at, settings: Vec::new() });
            continue;
        }
        let (key, value) = match content.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (content.as_str(), None),
        };
        let Some(section) = sections.last_mut() else {
            findings.refuse(at, "an option before the first section; begin with [global] or [name]");
            continue;
        };
        if section.settings.len() == MAX_OPTIONS {
            return Err(ImportError::TooMany { at, what: "options in a section", most: MAX_OPTIONS });
        }
        section.settings.push(Setting { key, value, at });
    }
    Ok(sections)
}

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
pub fn sections_of_command<'a>(
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
