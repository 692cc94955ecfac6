//! The decisions and their index.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;

use crate::tidy::{files, root};

#[test]
fn every_decision_is_in_the_index_and_has_a_context_and_a_decision() {
    let index = fs::read_to_string(root().join("docs/decisions/README.md")).unwrap();
    let mut found = Vec::new();
    files(&root().join("docs/decisions"), ".md", &mut found);
    for path in found.iter().filter(|path| !path.ends_with("README.md")) {
        let name = path.file_name().unwrap().to_string_lossy();
        let text = fs::read_to_string(path).unwrap();
        let number: usize = name.split('-').next().and_then(|number| number.parse().ok()).unwrap();
        assert!(text.starts_with(&format!("# {number}. ")), "{name} has another number in its title");
        assert!(text.contains("\n**Context.** ") && text.contains("\n**Decision.** "), "{name}");
        assert_eq!(
            index.matches(&format!("({name})")).count(),
            1,
            "docs/decisions/README.md lists {name} once"
        );
    }
    assert!(found.len() > 40, "the decisions are not found");
}

/// The numbers that a text says were never given, as `0088 to 0090`.
fn never_given(index: &str) -> BTreeSet<usize> {
    let words: Vec<&str> = index.split_whitespace().map(|word| word.trim_end_matches([',', '.'])).collect();
    let ranges = words.windows(3).filter(|three| three[1] == "to");
    ranges
        .filter_map(|three| Some(three[0].parse::<usize>().ok()?..=three[2].parse::<usize>().ok()?))
        .flatten()
        .collect()
}

#[test]
fn a_number_without_a_decision_is_said_to_be_none() {
    let index = fs::read_to_string(root().join("docs/decisions/README.md")).unwrap();
    let mut found = Vec::new();
    files(&root().join("docs/decisions"), ".md", &mut found);
    let names = found.iter().map(|path| path.file_name().unwrap().to_string_lossy());
    let given: BTreeSet<usize> =
        names.filter_map(|name| name.split('-').next().and_then(|number| number.parse().ok())).collect();
    let all: BTreeSet<usize> = (1..=*given.last().unwrap()).collect();
    let missing: BTreeSet<usize> = all.difference(&given).copied().collect();
    assert_eq!(missing, never_given(&index), "docs/decisions/README.md names the numbers that are missing");
}
