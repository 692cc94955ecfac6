//! Rules of the repository that a compiler does not check.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which crates each crate may depend on, less the `virtbench-` before each. ARCHITECTURE.md draws it.
pub(crate) const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("recipe", &["units"]),
    ("workload", &["units"]),
    ("record", &["units", "workload"]),
    ("model", &["units", "record"]),
    ("formats", &["units", "workload", "record"]),
    ("chart", &[]),
    ("report", &["chart", "units", "workload", "record", "model"]),
    ("fence", &["units"]),
    ("fence-sim", &["fence", "workload", "units"]),
    ("fence-evaluation", &["fence", "fence-sim", "workload", "model", "units"]),
    ("nbd", &["units"]),
    ("rfb", &[]),
    ("desktops", &["units"]),
    ("desktop-session", &["desktops"]),
    ("desktop", &["desktops", "rfb"]),
    ("fence-daemon", &["fence", "fence-sim", "model", "nbd", "units", "workload"]),
    ("counters", &["record"]),
    ("engine", &["counters", "nbd", "units", "workload", "record"]),
    ("workloads", &["counters", "engine", "host", "record", "units", "workload"]),
    ("users", &["counters", "engine", "record", "units", "workload"]),
    ("oltp", &["engine", "mark", "record", "tls", "units", "users", "workload"]),
    ("host", &["record"]),
    ("agent", &["desktop-session", "engine", "host", "mark", "recipe", "record", "workload", "workloads"]),
    ("libvirt", &[]),
    ("tls", &[]),
    ("https", &["tls"]),
    ("openstack", &["https"]),
    ("proxmox", &["https"]),
    ("vsphere", &["https"]),
    ("samples", &["record", "units", "workload"]),
    ("agents", &[]),
    ("mark", &[]),
    ("lab", &["agent", "agents", "host", "libvirt", "mark", "recipe", "record", "units", "workload"]),
    ("appliance", &["lab", "recipe", "units"]),
    ("operations", &["record", "units"]),
    (
        "platforms",
        &["lab", "libvirt", "mark", "openstack", "operations", "proxmox", "record", "units", "vsphere"],
    ),
    ("profiler", &["counters", "record"]),
    (
        "study",
        &[
            "appliance",
            "counters",
            "desktop",
            "desktops",
            "engine",
            "fence",
            "fence-daemon",
            "fence-sim",
            "formats",
            "lab",
            "mark",
            "model",
            "nbd",
            "oltp",
            "operations",
            "platforms",
            "profiler",
            "recipe",
            "record",
            "runs",
            "units",
            "users",
            "workload",
        ],
    ),
    ("runs", &["record", "units"]),
    ("history", &["model", "record", "runs", "oltp", "users"]),
    (
        "bench",
        &[
            "agents",
            "counters",
            "desktop",
            "desktops",
            "fence",
            "fence-evaluation",
            "fence-sim",
            "lab",
            "oltp",
            "openstack",
            "proxmox",
            "recipe",
            "record",
            "units",
            "users",
            "vsphere",
            "workload",
        ],
    ),
    (
        "cli",
        &[
            "agents",
            "appliance",
            "desktops",
            "engine",
            "fence",
            "fence-daemon",
            "fence-evaluation",
            "fence-sim",
            "formats",
            "history",
            "lab",
            "oltp",
            "operations",
            "platforms",
            "study",
            "report",
            "model",
            "profiler",
            "recipe",
            "record",
            "runs",
            "units",
            "users",
            "workload",
            "workloads",
        ],
    ),
];

/// Lines after which a file is asked what its second idea is.
const MAX_LINES: usize = 700;

pub(crate) fn root() -> PathBuf {
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

pub(crate) fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
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

/// Calls in `source` that write JSON with all the digits of a number, less those in tests.
fn exact_json(source: &str) -> usize {
    let of_use = source.split("#[cfg(test)]").next().unwrap_or_default();
    ["to_writer", "to_writer_pretty", "to_string", "to_string_pretty", "to_vec", "to_vec_pretty"]
        .iter()
        .map(|call| of_use.matches(&format!("serde_json::{call}(")).count())
        .sum()
}

#[test]
fn the_command_writes_json_by_the_function_that_rounds() {
    let mut sources = Vec::new();
    files(&root().join("crates/edge/cli/src"), ".rs", &mut sources);
    files(&root().join("crates/pure/formats/src/results"), ".rs", &mut sources);
    let of = |path: &PathBuf| exact_json(&fs::read_to_string(path).unwrap());
    let exact: Vec<&PathBuf> = sources.iter().filter(|path| of(path) > 0).collect();
    assert!(exact.is_empty(), "virtbench_formats::json writes figures: {exact:?}");
    let call = "serde_json::to_writer(&mut out, &costs)?;";
    assert_eq!((exact_json(call), exact_json(&format!("#[cfg(test)] {call}"))), (1, 0));
    assert!(sources.len() > 80, "the sources are not found");
}

/// Where events of the program's course may stand: what starts and ends things, and shakes hands.
const TRACED: [&str; 14] = [
    "edge/cli/src",
    "edge/appliance/src",
    "edge/lab/src",
    "edge/study/src",
    "edge/platforms/src/libvirt/connect.rs",
    "edge/platforms/src/libvirt/platform.rs",
    "edge/platforms/src/libvirt/outage.rs",
    "edge/platforms/src/ssh_machine.rs",
    "edge/platforms/src/keeper.rs",
    "edge/engine/src/nbd/connection.rs",
    "edge/engine/src/vhost_user/device.rs",
    "edge/fence-daemon/src/serve.rs",
    "edge/fence-daemon/src/frontend/nbd",
    "edge/fence-daemon/src/frontend/vhost_user/mod.rs",
];

#[test]
fn no_measured_path_is_traced() {
    let crates = root().join("crates");
    let mut sources = Vec::new();
    files(&crates, ".rs", &mut sources);
    let is_traced = |path: &&PathBuf| fs::read_to_string(path).unwrap().contains("tracing::");
    let (mut known, mut others) = (0, Vec::new());
    for path in sources.iter().filter(is_traced).filter(|path| !path.ends_with("tests/tidy.rs")) {
        let path = path.strip_prefix(&crates).unwrap();
        if TRACED.iter().any(|place| path.starts_with(place)) {
            known += 1;
        } else {
            others.push(path.to_owned());
        }
    }
    assert!(others.is_empty(), "{others:?}");
    assert!(known > 5, "the events are not found");
    // The agent, which measures, is built without.
    let manifest = fs::read_to_string(crates.join("edge/engine/Cargo.toml")).unwrap();
    assert!(manifest.contains("tracing = { workspace = true, optional = true }"), "{manifest}");
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

/// Tests that a line of the Makefile names and that do not exist: cargo takes a filter that matches nothing for success.
fn unknown_tests(line: &str, programs: &BTreeSet<String>, tests: &BTreeMap<String, usize>) -> Vec<String> {
    let Some((_, named)) = line.split_once("--test ") else { return Vec::new() };
    let mut words = named.split_whitespace().take_while(|word| *word != "--");
    let program = words.next().unwrap_or_default();
    let filter = words.find(|word| !word.starts_with('-'));
    let mut unknown: Vec<String> =
        (!programs.contains(program)).then(|| program.to_owned()).into_iter().collect();
    if let Some(filter) = filter {
        let (module, test) = filter.split_once("::").unwrap_or((filter, ""));
        let is_module = programs.contains(&format!("{program}/{module}"));
        let is_test = test.is_empty() || tests.get(test) == Some(&1);
        unknown.extend((!is_module || !is_test).then(|| filter.to_owned()));
    }
    unknown
}

/// Programs of tests, and the modules of those that have some as `program/module`.
fn programs_of_tests() -> BTreeSet<String> {
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    let inside = |path: &PathBuf| {
        let folder = path.parent()?;
        let is_in_one = folder.ends_with("tests") && folder.join("main.rs").exists();
        let path = path.with_extension("").display().to_string();
        let (_, inside) = path.split_once("/tests/")?;
        Some(match inside.trim_end_matches("/main") {
            "main" => "all".to_owned(),
            module if is_in_one => format!("all/{module}"),
            inside => inside.to_owned(),
        })
    };
    sources.iter().filter_map(inside).collect()
}

#[test]
fn long_tests_are_started_by_names_that_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let (programs, tests) = (programs_of_tests(), tests());
    let unknown: Vec<String> =
        makefile.lines().flat_map(|line| unknown_tests(line, &programs, &tests)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for line in [
        "cargo test --test nothing",
        "cargo test --test command nothing -- --exact",
        "--test command load::nothing",
    ] {
        assert_eq!(unknown_tests(line, &programs, &tests).len(), 1, "{line}");
    }
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

/// Documents of the repository, by their path in it.
fn documents() -> Vec<String> {
    let mut found = Vec::new();
    files(&root().join("docs"), ".md", &mut found);
    let at_root = fs::read_dir(root()).unwrap().flatten().map(|entry| entry.path());
    found.extend(at_root.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    found.iter().map(|path| path.strip_prefix(root()).unwrap().display().to_string()).collect()
}

/// A document without what stands between lines of three backticks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The anchor that renderers of Markdown give to a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

/// Links of the document at `path` that lead nowhere.
fn dead_links(path: &str, text: &str) -> Vec<String> {
    let folder = root().join(path).parent().unwrap().to_owned();
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let mut dead = Vec::new();
    for target in targets.filter(|target| !target.contains("://")) {
        let (file, place) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { root().join(path) } else { folder.join(file) };
        let headings = || fs::read_to_string(&file).map(|text| prose(&text)).unwrap_or_default();
        let has_place = || headings().lines().any(|line| line.starts_with('#') && anchor(line) == place);
        if !file.exists() || (!place.is_empty() && !has_place()) {
            dead.push(format!("{path} links to {target}"));
        }
    }
    dead
}

/// Paths in backticks that a document names and that are not there.
fn dead_paths(path: &str, text: &str) -> Vec<String> {
    let text = prose(text);
    let names = text.split('`').skip(1).step_by(2).filter(|name| !name.contains(char::is_whitespace));
    let folders = ["crates/", "docs/", "scripts/", "schema/", "contrib/", "fuzz/"];
    let ours = names.filter(|name| folders.iter().any(|folder| name.starts_with(folder)));
    ours.filter(|name| !root().join(name).exists()).map(|name| format!("{path} names {name}")).collect()
}

/// Papers cited by a number that only this project's authors know.
fn numbered_papers(path: &str, text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter(|word| !["//", "///", "//!"].contains(word));
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let numbered = words.windows(2).filter(|pair| {
        let digits = pair[1].trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_paper = matches!(
            pair[0].trim_start_matches(|letter: char| !letter.is_alphanumeric()),
            "paper" | "papers"
        );
        is_paper && matches!(digits.strip_suffix("'s").unwrap_or(digits), "1" | "2" | "3" | "4" | "5")
    });
    numbered
        .map(|pair| format!("{path} says {:?}: docs/bibliography.md has its key", pair.join(" ")))
        .collect()
}

#[test]
fn documents_link_to_what_exists_and_cite_papers_by_key() {
    let (mut faults, documents) = (Vec::new(), documents());
    for path in &documents {
        let text = fs::read_to_string(root().join(path)).unwrap();
        faults.extend(dead_links(path, &text).into_iter().chain(numbered_papers(path, &text)));
        // What has changed may be gone since.
        if path != "CHANGELOG.md" {
            faults.extend(dead_paths(path, &text));
        }
    }
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    for path in sources.iter().filter(|path| !path.ends_with("cli/tests/tidy.rs")) {
        faults.extend(numbered_papers(&path.display().to_string(), &fs::read_to_string(path).unwrap()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for name in ["README.md", "ARCHITECTURE.md", "docs/decisions/README.md"] {
        assert!(documents.iter().any(|path| path == name), "{name} is not among {documents:?}");
    }
}

/// Lines of a script that end a pipe early: what writes into it then fails, and with `pipefail` so does the pipe, now and then.
fn early_ends(path: &str, text: &str) -> Vec<String> {
    let is_early = |line: &str| line.contains("| grep -q") || line.contains("| grep -m");
    let all = text.lines().enumerate().filter(|(_, line)| is_early(line));
    all.map(|(number, _)| format!("{path}:{}: grep ... >/dev/null reads to the end", number + 1)).collect()
}

#[test]
fn scripts_read_pipes_to_their_end() {
    let mut scripts = Vec::new();
    files(&root().join("scripts"), ".sh", &mut scripts);
    assert!(scripts.len() > 10, "{scripts:?}");
    let of = |path: &PathBuf| early_ends(&path.display().to_string(), &fs::read_to_string(path).unwrap());
    let faults: Vec<String> = scripts.iter().flat_map(of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(early_ends("s", "apt-cache policy rustup |\nx | grep -q y").len(), 1);
}

#[test]
fn a_dead_link_a_dead_path_and_a_numbered_paper_are_found() {
    let links = "[a](README.md) [b](https://example.org/x) [c](docs/none.md)\n```\n[d](docs/none.md)\n```\n[e](README.md#none)";
    assert_eq!(dead_links("ARCHITECTURE.md", links).len(), 2);
    assert_eq!(dead_links("docs/formats.md", "[a](../README.md) [b](README.md) [c](#traces)").len(), 1);
    assert_eq!(dead_paths("README.md", "`docs/none.txt` `docs/bench.txt` `docs/none with words`").len(), 1);
    let papers = "Paper 5's slots, (paper\n1, section 3), papers of 2010, `paper_4_s_table`, paper 6, paper1-thar.toml";
    assert_eq!(numbered_papers("README.md", papers).len(), 2);
    assert_eq!(numbered_papers("a.rs", "//! as paper\n//! 5 says").len(), 1);
}
