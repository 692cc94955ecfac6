//! The lines of a job file: sections, settings, comments.

use super::super::{Findings, ImportError, Location};

/// The most options that can apply to one job.
pub const MAX_OPTIONS: usize = 500;
/// The most sections, global ones included.
const MAX_SECTIONS: usize = 1024;

/// `option=value`, or `option` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The option.
    pub key: &'a str,
    /// Its value.
    pub value: Option<&'a str>,
    /// Where it stands, from 1.
    pub line: usize,
}

/// A section with its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Where it begins, from 1.
    pub line: usize,
    /// Its settings.
    pub settings: Vec<Setting<'a>>,
}

/// The sections of `text`. `;` and `#` begin a comment wherever they stand, as in fio.
pub fn sections<'a>(text: &'a str, findings: &mut Findings) -> Result<Vec<Section<'a>>, ImportError> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for (line, raw) in (1..).zip(text.lines()) {
        let at = Location::line(line);
        let content = raw.split([';', '#']).next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.unwrap_or_else(|| {
                findings.refuse(at, "a section is written [name] on a line of its own");
                rest
            });
            if sections.len() == MAX_SECTIONS {
                return Err(ImportError::TooMany { at, what: "sections", most: MAX_SECTIONS });
            }
            sections.push(Section { name, line, settings: Vec::new() });
            continue;
        }
        let (key, value) = match content.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (content, None),
        };
        if key == "include" || key.starts_with("include ") {
            findings.ignore(at, "include: other files are not read; put their lines here");
            continue;
        }
        let Some(section) = sections.last_mut() else {
            findings.refuse(at, "an option before the first section; begin with [global] or [name]");
            continue;
        };
        if section.settings.len() == MAX_OPTIONS {
            return Err(ImportError::TooMany { at, what: "options in a section", most: MAX_OPTIONS });
        }
        section.settings.push(Setting { key, value, line });
    }
    Ok(sections)
}
