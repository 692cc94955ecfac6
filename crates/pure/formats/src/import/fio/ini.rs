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
