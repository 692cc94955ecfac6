//! Run folders, and what is read of one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use virtbench_model::history::{HistoryRun, measures, run_load};
use virtbench_record::{HostFacts, Provenance};
use virtbench_runs::{FolderError, load_any_run, read_provenance, write_whole};
use walkdir::{DirEntry, WalkDir};

use crate::error::{CatalogueError, MAX_TAGS};

/// How far below a folder runs are looked for.
const DEEPEST: usize = 6;

/// The most folders that are looked at.
const MOST_FOLDERS: usize = 200_000;

const RUN_FILE: &str = "run.json";

/// The run folders in `root`, or itself. Links are not followed, and neither hidden folders nor what lies in a run are
/// looked into.
#[must_use]
pub fn run_folders(root: &Path) -> Vec<PathBuf> {
    let visible = |entry: &DirEntry| {
        let hidden = entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
        entry.file_type().is_dir() && !hidden
    };
    let mut found = Vec::new();
    let mut walk = WalkDir::new(root).max_depth(DEEPEST).sort_by_file_name().into_iter();
    let mut looked_at = 0;
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        looked_at += 1;
        if looked_at > MOST_FOLDERS {
            break;
        }
        if !visible(&entry) {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
        } else if entry.path().join(RUN_FILE).is_file() {
            found.push(entry.into_path());
            walk.skip_current_dir();
        }
    }
    found
}

/// What tells that nothing changed in a run folder since it was read: sizes and times of its files.
pub(crate) fn state(folder: &Path) -> String {
    let of_file = |name: &str| {
        let metadata = fs::metadata(folder.join(name)).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{name} {} {}", metadata.len(), modified.as_nanos()))
    };
    let states: Vec<String> =
        [RUN_FILE, "results.jsonl", "tags.json"].into_iter().filter_map(of_file).collect();
    states.join("; ")
}

/// Reads a run folder.
///
/// # Errors
/// A file of it is damaged or of a later version.
pub fn read_run(folder: &Path) -> Result<HistoryRun, FolderError> {
    let run = load_any_run(folder)?;
    let provenance = &run.provenance;
    Ok(HistoryRun {
        folder: folder.display().to_string(),
        started_unix_s: provenance.started_unix_s,
        study: provenance.plan.study().to_owned(),
        parts: parts(provenance),
        load: run_load(&run.records),
        identity: identity(provenance),
        host: host(provenance),
        versions: versions(provenance),
        // A list that cannot be read is mended by tagging anew; the run counts all the same.
        tags: read_tags(folder).unwrap_or_default().into_iter().collect(),
        measures: measures(provenance, &run.records),
    })
}

/// Fields of plans that do not change what is measured: how often, in which order, and what a file is called whose content is in the plan.
const NO_PARTS: [&str; 7] = ["study", "seed", "repetitions", "trials", "grid", "tile", "day"];

/// What must be alike for runs to be compared: each field of the plan; processors, memory and storage of each machine. Versions may differ.
pub(crate) fn parts(provenance: &Provenance) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&provenance.plan) {
        for (name, value) in fields {
            if !NO_PARTS.contains(&name.as_str()) {
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                parts.insert(name, text);
            }
        }
    }
    for (name, facts) in machines(provenance) {
        let of = if name.is_empty() { String::new() } else { format!("@{name}") };
        let mut part = |part: &str, value: String| parts.insert(format!("{part}{of}"), value);
        part("processor", facts.cpu.clone());
        part("processors", facts.processors.to_string());
        part("filesystem", facts.disk.filesystem.clone());
        part("device", device(facts));
    }
    parts
}

/// The same for copies of a run, whatever has been measured of it by then.
fn identity(provenance: &Provenance) -> String {
    let Provenance { version, command, started_unix_s, plan, host, .. } = provenance;
    serde_json::to_string(&(started_unix_s, version, command, plan, host)).unwrap_or_default()
}

/// The host of a run, without a name, and the machines of its environments.
fn machines(provenance: &Provenance) -> Vec<(&str, &HostFacts)> {
    let others = provenance.machines.iter().map(|machine| (machine.environment.as_str(), &machine.facts));
    std::iter::once(("", &provenance.host)).chain(others).collect()
}

fn device(facts: &HostFacts) -> String {
    facts.disk.device.clone().unwrap_or_else(|| "an unknown device".to_owned())
}

fn host(provenance: &Provenance) -> String {
    let words = machines(provenance).into_iter().map(|(name, facts)| {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let HostFacts { cpu, processors, disk, .. } = facts;
        format!("{name}{cpu}, {processors} processors, {} on {}", disk.filesystem, device(facts))
    });
    words.collect::<Vec<_>>().join("; ")
}

fn versions(provenance: &Provenance) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::from([
        ("virtbench".to_owned(), provenance.version.clone()),
        ("kernel".to_owned(), provenance.host.kernel.clone()),
    ]);
    if let Some(guest) = &provenance.guest {
        versions.insert("QEMU".into(), guest.qemu.clone());
        versions.insert("guest kernel".into(), guest.kernel.clone());
        versions.insert("accelerator".into(), guest.accelerator.name.clone());
    }
    for machine in &provenance.machines {
        versions.insert(format!("kernel of {}", machine.environment), machine.facts.kernel.clone());
    }
    versions
}

/// The longest, in characters.
const LONGEST: usize = 60;

const FILE: &str = "tags.json";

/// The tags of a run, none where nobody gave it any.
///
/// # Errors
/// Its file cannot be read or is no list of texts.
pub fn read_tags(folder: &Path) -> Result<BTreeSet<String>, CatalogueError> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(source) => return Err(CatalogueError::File { path, source }),
    };
    serde_json::from_str(&text).map_err(|error| CatalogueError::File { path, source: error.into() })
}

/// Adds tags to a run and removes others; returns what it has then.
///
/// # Errors
/// There is no run in the folder, a word is no tag, there would be too many, or the file cannot be written.
pub fn write_tags(
    folder: &Path,
    add: &[String],
    remove: &[String],
) -> Result<BTreeSet<String>, CatalogueError> {
    read_provenance(folder)?;
    if let Some(word) = add.iter().find(|word| !is_tag(word)) {
        return Err(CatalogueError::Tag(word.clone()));
    }
    let mut tags = read_tags(folder)?;
    tags.extend(add.iter().cloned());
    tags.retain(|tag| !remove.contains(tag));
    if tags.len() > MAX_TAGS {
        return Err(CatalogueError::TooManyTags { path: folder.to_owned() });
    }
    write_whole(&folder.join(FILE), &tags)?;
    Ok(tags)
}

fn is_tag(word: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "._-/+".contains(c);
    !word.is_empty() && word.chars().count() <= LONGEST && word.chars().all(fits)
}
