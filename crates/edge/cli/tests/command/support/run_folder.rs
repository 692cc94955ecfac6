//! What a run has written so far, and what a run that ended must not leave.

use std::path::Path;

use serde_json::Value;

/// The whole lines of `results.jsonl`, which may be written at this moment, or be missing.
pub fn records(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out.join("results.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn run_json(out: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(out.join("run.json")).unwrap()).unwrap()
}

/// Copies of disks and sockets in a run folder, all of which go with the run.
pub fn scratch(out: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(out).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("virtbench-")).collect()
}

/// Loop devices over files with `part` in their paths.
pub fn loops(part: &str) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let over = devices.filter(|device| {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        file.contains(part)
    });
    over.map(|device| device.file_name().to_string_lossy().into_owned()).collect()
}

/// Loop devices over files that lie in `folder`.
pub fn loops_in(folder: &Path) -> Vec<String> {
    loops(folder.to_str().unwrap())
}
