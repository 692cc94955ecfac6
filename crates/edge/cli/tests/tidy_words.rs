//! Phrases that read as translated stand nowhere. Say who does what to what, in words of the field.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// What is not written, and what is written instead.
const PHRASES: [(&str, &str); 11] = [
    ("whoever", "name them: the caller, a client, the user"),
    ("cannot be meant", "is invalid"),
    ("can be meant", "is valid"),
    ("is told of", "gets, hears of, is reported"),
    ("are told of", "get, are reported"),
    ("nobody lets us", "who forbids it"),
    ("nobody looked", "it was not sampled"),
    ("nobody knows", "it is unknown"),
    ("makes way", "is replaced, is removed"),
    ("came to nothing", "failed"),
    ("that takes about", "about how long that takes"),
];

/// Endings of files in which people read words.
const ENDINGS: [&str; 4] = ["rs", "md", "toml", "sh"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|ending| ENDINGS.iter().any(|one| ending == *one)) {
            found.push(path);
        }
    }
}

/// Each line of a text that has a phrase, with the phrase, also where the line ends in it.
fn phrases(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<&str> = text.lines().collect();
    let words =
        |line: &str| line.trim_start_matches(['/', '!', '#', '-', '*', ' ']).to_lowercase().replace('_', " ");
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map(|next| words(next)).unwrap_or_default();
        let (own, both) = (words(line), format!("{} {next}", words(line)));
        for (phrase, _) in PHRASES {
            let begins_here = both.find(phrase).is_some_and(|at| at < own.len());
            if begins_here {
                found.push((index + 1, phrase));
            }
        }
    }
    found
}

#[test]
fn no_phrase_reads_as_translated() {
    let root = root();
    let mut files = Vec::new();
    ["crates", "docs", "scripts"].iter().for_each(|folder| texts(&root.join(folder), &mut files));
    let here = fs::read_dir(&root).unwrap().flatten().map(|entry| entry.path());
    files.extend(here.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    assert!(files.len() > 1000, "{} files were found", files.len());
    let wrong: Vec<String> = files
        .iter()
        .filter(|path| !path.ends_with("tests/tidy_words.rs"))
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let instead = |phrase| PHRASES.iter().find(|(one, _)| *one == phrase).unwrap().1;
            let said = move |(line, phrase)| format!("{name}:{line}: {phrase}; {}", instead(phrase));
            phrases(&text).into_iter().map(said)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_phrase_is_found_over_the_end_of_a_line_and_in_a_name() {
    assert_eq!(phrases("/// Whoever asks."), [(1, "whoever")]);
    assert_eq!(phrases("fn a_day_that_cannot_be_meant() {"), [(1, "cannot be meant")]);
    assert_eq!(phrases("    // an older one makes\n    // way for it"), [(1, "makes way")]);
    assert_eq!(phrases("who ever makes a way"), []);
}
