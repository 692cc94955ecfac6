//! What a run has written so far, and what a run that ended must not leave.

use std::collections::BTreeSet;
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

/// Loop devices that processes have mounted, each in whatever namespace it lives, by name and the number of the attachment.
pub fn mounted_loops(processes: impl IntoIterator<Item = u32>) -> BTreeSet<(String, String)> {
    let tables = processes.into_iter().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/mountinfo")));
    let names = tables.flatten().flat_map(|table| {
        let sources = table.lines().filter_map(|line| line.split(" - ").nth(1)?.split(' ').nth(1));
        let names = sources.filter_map(|source| source.strip_prefix("/dev/"));
        names.filter(|name| name.starts_with("loop")).map(str::to_owned).collect::<Vec<_>>()
    });
    names.map(|name| (name.clone(), attachment(&name))).collect()
}

/// Whether a loop device is still attached as it was.
pub fn is_attached((name, number): &(String, String)) -> bool {
    Path::new("/sys/block").join(name).join("loop/backing_file").exists() && attachment(name) == *number
}

/// The kernel counts a device up each time that it is attached.
fn attachment(name: &str) -> String {
    std::fs::read_to_string(Path::new("/sys/block").join(name).join("diskseq")).unwrap_or_default()
}

/// Loop devices over files that lie in `folder`.
pub fn loops_in(folder: &Path) -> Vec<String> {
    loops(folder.to_str().unwrap())
}
