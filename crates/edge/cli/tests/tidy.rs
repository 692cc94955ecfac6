//! Rules of the repository that a compiler does not check.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which crates each crate may depend on, less the `virtbench-` before each. ARCHITECTURE.md draws it.
const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("workload", &["units"]),
    ("record", &["units", "workload"]),
    ("model", &["units", "record"]),
    ("formats", &["units", "workload", "record"]),
    ("report", &["units", "workload", "record", "model"]),
    ("fence", &["units"]),
    ("fence-sim", &["fence", "workload", "model", "units"]),
    ("nbd", &["units"]),
    ("fence-daemon", &["fence", "fence-sim", "nbd", "units", "workload"]),
    ("counters", &["record"]),
    ("engine", &["counters", "nbd", "units", "workload", "record"]),
    ("files", &["engine", "units", "workload"]),
    ("classics", &["counters", "engine", "files", "record", "units", "workload"]),
    ("agent", &["classics", "engine", "record", "workload"]),
    ("lab", &["agent", "record", "units", "workload"]),
    ("study", &["engine", "fence-daemon", "fence-sim", "lab", "model", "nbd", "record", "units", "workload"]),
    ("profiler", &["counters", "record"]),
    ("bench", &["fence", "fence-sim", "lab", "record", "units", "workload"]),
    (
        "cli",
        &[
            "classics",
            "engine",
            "fence-daemon",
            "fence-sim",
            "formats",
            "lab",
            "study",
            "report",
            "model",
            "profiler",
            "record",
            "units",
            "workload",
        ],
    ),
];

/// Lines after which a file is asked what its second idea is (tests that live beside it not counted).
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn short(name: &str) -> &str {
    if name == "virtbench" { "cli" } else { name.strip_prefix("virtbench-").unwrap_or(name) }
}

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut seen = Vec::new();
    for package in &metadata.packages {
        let name = short(&package.name);
        let edges = allowed.get(name).unwrap_or_else(|| panic!("crate {name} is not in the table of edges"));
        let pure = package.manifest_path.as_str().contains("/crates/pure/");
        for dependency in &package.dependencies {
            if dependency.kind != DependencyKind::Normal || !dependency.name.starts_with("virtbench") {
                continue;
            }
            let target = short(&dependency.name);
            assert!(edges.contains(&target), "{name} must not depend on {target}");
            let target_is_pure = root().join("crates/pure").join(target).exists();
            assert!(!pure || target_is_pure, "{name} is pure but depends on {target}");
        }
        seen.push(name);
    }
    assert!(allowed.keys().all(|name| seen.contains(name)), "the table names a crate that is gone: {seen:?}");
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

#[test]
fn no_file_holds_two_ideas() {
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    for path in sources {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_crate_is_described_in_the_architecture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (name, _) in EDGES {
        assert!(text.contains(&format!("| `{name}` |")), "ARCHITECTURE.md has no line for {name}");
    }
}

#[test]
fn every_promise_names_what_holds_it() {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    let code: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut promises = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Promise")) {
        promises += 1;
        let holder = line.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        for name in holder.split('`').skip(1).step_by(2).filter(|name| !name.starts_with("make ")) {
            let known = code.contains(&format!("fn {name}(")) || root().join(name).exists();
            assert!(known, "SPECIFICATION.md: {name} is neither a test nor a file: {line}");
        }
        assert!(holder.contains('`') || holder.contains("not yet checked"), "nothing holds: {line}");
    }
    assert!(promises > 10);
}

#[test]
fn the_changelog_knows_this_version() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(text.contains(env!("CARGO_PKG_VERSION")) || text.contains("Unreleased"));
}
