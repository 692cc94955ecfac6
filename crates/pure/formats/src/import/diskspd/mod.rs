//! diskspd command lines (microsoft/diskspd, CmdLineParser.cpp): one a line, with or without the
//! command's name in front; and its XML profiles.

mod options;
mod profile;

use super::{Findings, ImportError, ImportedJob, Location, MAX_JOBS};
use options::Command;

/// Reads every command line of the text. Other lines of a script are named.
pub fn read(text: &str, findings: &mut Findings) -> Result<Vec<ImportedJob>, ImportError> {
    if text.trim_start().starts_with('<') {
        return profile::read(text, findings);
    }
    let mut jobs = Vec::new();
    let mut group = 0;
    for (line, words) in super::words::command_lines(text)? {
        let at = |argument| Location { line, argument: Some(argument) };
        let first = words.first().map_or("", String::as_str);
        let program = first.rsplit(['/', '\\']).next().unwrap_or("").to_ascii_lowercase();
        let named = program == "diskspd" || program == "diskspd.exe";
        if !named && !first.starts_with(['-', '/']) {
            findings.ignore(Location::line(line), format!("{first:.40?} is not a diskspd command"));
            continue;
        }
        // Argument numbers count from the command's name, which is 0 where it is given.
        let arguments = (1..).zip(words.iter().skip(usize::from(named)));
        let mut command = Command::default();
        let all: Vec<(usize, &str)> = arguments.map(|(number, word)| (number, word.as_str())).collect();
        // The block size is a unit of other sizes wherever it stands.
        for (number, word) in &all {
            if let Some(value) = word.strip_prefix("-b").or_else(|| word.strip_prefix("/b")) {
                options::block_size(&mut command, value, at(*number))?;
            }
        }
        for (number, word) in &all {
            let is_path = word.starts_with('/') && word[1..].contains('/');
            match word.strip_prefix(['-', '/']).filter(|_| command.targets.is_empty() && !is_path) {
                Some(option) => options::apply(&mut command, option, at(*number), findings)?,
                None => command.targets.push((*word).to_owned()),
            }
        }
        let made = command.finish(line, group, findings);
        if jobs.len() + made.len() > MAX_JOBS {
            return Err(ImportError::TooMany { at: Location::line(line), what: "jobs", most: MAX_JOBS });
        }
        jobs.extend(made);
        group += 1;
    }
    Ok(jobs)
}
