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
    ("profiler", &["counters", "record"]),
    (
        "study",
        &[
            "engine",
            "fence-daemon",
            "fence-sim",
            "formats",
            "lab",
            "model",
            "nbd",
            "profiler",
            "record",
            "units",
            "workload",
        ],
    ),
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

/// How often each name is that of a test.
fn tests() -> BTreeMap<String, usize> {
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    let mut names = BTreeMap::new();
    for path in sources {
        let text = fs::read_to_string(path).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            is_test |= line == "#[test]";
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) {
                if is_test {
                    *names.entry(name.to_owned()).or_insert(0) += 1;
                }
                is_test = false;
            }
        }
    }
    names
}

/// What a line of SPECIFICATION.md names as holding it, and why that cannot be.
fn faults_of_a_promise(line: &str, tests: &BTreeMap<String, usize>, targets: &[&str]) -> Vec<String> {
    let holder = line.trim_end_matches('|').rsplit('|').next().unwrap().trim();
    let mut faults = Vec::new();
    if !holder.contains('`') || holder.contains("not kept") || holder.contains("not yet") {
        faults.push(format!("nothing holds: {line}"));
    }
    for name in holder.split('`').skip(1).step_by(2) {
        let is_known = match name.strip_prefix("make ") {
            Some(target) => targets.contains(&target),
            None if name.contains(['/', '.']) => root().join(name).exists(),
            None => tests.get(name) == Some(&1),
        };
        if !is_known {
            let count = tests.get(name).copied().unwrap_or(0);
            faults.push(format!("{name}: {count} tests have that name, and it is no file or target: {line}"));
        }
    }
    faults
}

#[test]
fn every_promise_names_what_holds_it() {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets = makefile.lines().filter_map(|line| line.split_once(':')).map(|(target, _)| target);
    let (tests, targets) = (tests(), targets.collect::<Vec<_>>());
    let (kept, not_kept) = text.split_once("\n## Not kept").expect("a chapter of what is not kept");
    let promises: Vec<&str> =
        kept.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Promise")).collect();
    let faults: Vec<String> =
        promises.iter().flat_map(|line| faults_of_a_promise(line, &tests, &targets)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(promises.len() > 200 && not_kept.contains("| "), "the tables are not found");
}

#[test]
fn a_promise_held_by_no_test_or_by_two_is_found() {
    let tests = BTreeMap::from([("held".to_owned(), 1), ("twice".to_owned(), 2)]);
    let faults =
        |holder: &str| faults_of_a_promise(&format!("| It does | {holder} |"), &tests, &["bench"]).len();
    assert_eq!((faults("`held`, `make bench`, `Makefile.lock/x`"), faults("`held`, `make bench`")), (1, 0));
    assert_eq!((faults("`twice`"), faults("`helper`"), faults("`make nothing`")), (1, 1, 1));
    assert_eq!((faults("`held`, not kept"), faults("nothing")), (1, 1));
}

#[test]
fn the_changelog_knows_this_version() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(text.contains(env!("CARGO_PKG_VERSION")) || text.contains("Unreleased"));
}
