//! Messages of the crate `study` name the options of the command by which something is changed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::tidy::{files, root};

/// The options that a text names, without those that stand in comments.
fn named(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let of_line = |line: &str| -> Vec<String> {
        let after = line.match_indices("--").filter(|(at, _)| !line[..*at].ends_with(['-', '|']));
        let names = after.map(|(at, _)| {
            let rest = line[at + 2..].chars();
            rest.take_while(|letter| letter.is_ascii_lowercase() || *letter == '-').collect::<String>()
        });
        names.map(|name| name.trim_end_matches('-').to_owned()).filter(|name| !name.is_empty()).collect()
    };
    lines.flat_map(of_line).collect()
}

#[test]
fn every_option_that_a_study_names_is_one_of_the_command() {
    let completions = Command::new(env!("CARGO_BIN_EXE_virtbench")).args(["completions", "bash"]).output();
    let completions = String::from_utf8(completions.unwrap().stdout).unwrap();
    let words = completions.split(|letter: char| letter.is_whitespace() || "\"|)".contains(letter));
    let known: BTreeSet<&str> = words.filter_map(|word| word.strip_prefix("--")).collect();
    assert!(known.contains("target-dir") && known.len() > 100, "{known:?}");
    let mut sources = Vec::new();
    files(&root().join("crates/edge/study/src"), ".rs", &mut sources);
    let mut count = 0;
    for path in sources.iter().filter(|path| !path.to_string_lossy().ends_with("_tests.rs")) {
        let options = named(&fs::read_to_string(path).unwrap());
        count += options.len();
        let unknown: Vec<&String> = options.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{}: the command has no option {unknown:?}", path.display());
    }
    assert!(count > 20, "the messages are not found");
}

#[test]
fn a_study_reads_no_command_line() {
    let manifest = fs::read_to_string(root().join("crates/edge/study/Cargo.toml")).unwrap();
    assert!(!manifest.lines().any(|line| line.starts_with("clap")), "the command parses its arguments");
    let mut sources = Vec::new();
    files(&root().join("crates/edge/study/src"), ".rs", &mut sources);
    let reads = |path: &std::path::PathBuf| fs::read_to_string(path).unwrap().contains("env::args");
    assert_eq!(
        sources.iter().filter(|path| reads(path)).collect::<Vec<_>>(),
        Vec::<&std::path::PathBuf>::new()
    );
}

#[test]
fn options_in_messages_are_found_and_those_in_comments_are_not() {
    let source =
        "// --gone\nlet a = \"raise --time, or --out-of: x\"; i--; #[cfg(test)] mod tests { \"--x\" }";
    assert_eq!(named(source).into_iter().collect::<Vec<_>>(), ["out-of", "time"]);
}
