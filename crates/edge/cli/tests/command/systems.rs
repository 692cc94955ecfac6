//! `virtbench study deviation --systems` with real guests on the fence's disks, small.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::support::run_folder::records;
use crate::support::{children, finish, folder, is_alive, run, signal, virtbench, wait_for};
use virtbench_record::SystemsSummary;

/// A light load, so that guests that hardly get a processor keep up with it.
const LOAD: &str = "load:size=4k,read=50,random=100,outstanding=8";

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Both machines have all figures, measured and simulated.
fn assert_measured(system: &serde_json::Value) {
    let vms = system["vms"].as_array().unwrap();
    assert_eq!(vms.len(), 2, "each of them: {system}");
    for (vm, figures) in vms
        .iter()
        .flat_map(|vm| ["per_second", "mean_ms", "p99_ms", "simulated_mean_ms"].map(|one| (vm, one)))
    {
        let both = vm[figures].as_array().unwrap();
        assert!(both.iter().all(|value| value.as_f64().is_some_and(|value| value > 0.0)), "{figures}: {vm}");
    }
    assert!(vms.iter().all(|vm| vm["response_deviation"]["mean"].is_number()), "{system}");
}

#[test]
fn systems_are_compared_in_one_run_beside_what_the_simulator_says() {
    let folder = folder();
    let out = folder.path().join("run");
    let place = out.to_str().unwrap();
    let words = [
        "study",
        "deviation",
        "--systems",
        "none,VirtualFence",
        "--workload",
        LOAD,
        "--pattern",
        "10,20",
        "--size",
        "8MiB",
        "--memory",
        "128MiB",
        "--repetitions",
        "1",
        "--time",
        "3s",
        "--json",
        "--out",
        place,
    ];
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    // As its schema has it.
    let numbers: SystemsSummary = serde_json::from_value(json.clone()).unwrap();
    assert_eq!((numbers.folder.as_str(), numbers.systems.len()), (place, 2));
    let systems = json["systems"].as_array().unwrap();
    let names: Vec<&str> = systems.iter().map(|system| system["system"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "VirtualFence"], "{json}");
    for system in systems {
        assert_measured(system);
    }
    assert_eq!(entries(&out), ["comparison.csv", "none", "table.json", "table.md", "virtualfence"]);
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert_eq!(table.lines().filter(|line| line.contains("| vm")).count(), 4, "{table}");
    let rows = fs::read_to_string(out.join("comparison.csv")).unwrap();
    // Each system: both machines alone and both together.
    assert_eq!(rows.lines().count(), 1 + 2 * 4, "{rows}");
    for system in ["none", "virtualfence"] {
        let names = entries(&out.join(system));
        assert!(names.iter().all(|name| !name.contains("img")), "{names:?}");
        let toml = fs::read_to_string(out.join(system).join("fence.toml")).unwrap();
        let socket =
            toml.lines().find_map(|line| line.strip_prefix("socket = \"")?.strip_suffix('"')).unwrap();
        assert!(!Path::new(socket).parent().unwrap().exists(), "{socket} is left");
    }
    // What is finished is not measured again, and not even a disk is made for it.
    let before = fs::read_to_string(out.join("none/run.json")).unwrap();
    let again = run(&[&words[..], &["--resume"]].concat());
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(again.json()["systems"], json["systems"]);
    assert!(!again.stderr.contains("measurements of"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(out.join("none/run.json")).unwrap(), before);
    let text = run(&["report", out.join("none").to_str().unwrap()]);
    assert_eq!(text.code(), 0, "{text:?}");
}

/// Loop devices that a process's QEMUs have.
fn loops_of(pid: u32) -> Vec<String> {
    let mut found = Vec::new();
    for (child, _) in children(pid) {
        let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        found.extend(words.split("/dev/").skip(1).filter_map(|rest| {
            let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            name.starts_with("loop").then_some(name)
        }));
    }
    found
}

fn is_attached(device: &str) -> bool {
    Path::new("/sys/block").join(device).join("loop/backing_file").exists()
}

/// Groups of a process, whichever version of cgroups this host has.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let roots = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"].into_iter();
    let all = roots.flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    let ours = |path: &PathBuf| path.to_string_lossy().contains(&format!("/virtbench-{pid}-"));
    all.map(|entry| entry.path()).filter(ours).collect()
}

fn blkio_study(out: &Path, time: &str) -> Child {
    let words = ["study", "deviation", "--systems", "blkio", "--workload", LOAD, "--pattern", "10,20"];
    let more = ["--size", "8MiB", "--memory", "128MiB", "--repetitions", "1", "--time", time, "--json"];
    let mut command = virtbench();
    command.args(words).args(more).args(["--resume", "--out"]).arg(out);
    command.spawn().unwrap()
}

/// Of two guests, each of which may have half of what the hard disk does at random, 32 of 65 a second; without limits
/// they do twice that together. The kernel counts in tenths of a second, so that it lets pass up to half more.
#[test]
fn guests_on_blkio_are_held_to_their_limits_and_nothing_is_left() {
    let folder = folder();
    let out = folder.path().join("run");
    let child = blkio_study(&out, "4s");
    let pid = child.id();
    let devices = wait_for("both guests", || Some(loops_of(pid)).filter(|devices| devices.len() == 2));
    let groups = wait_for("their limits", || Some(groups_of(pid)).filter(|groups| groups.len() == 2));
    // A group is made before its limit is written.
    for group in &groups {
        let files = ["blkio.throttle.read_iops_device", "io.max"].map(|file| group.join(file));
        let limit = || files.iter().find_map(|file| fs::read_to_string(file).ok());
        wait_for("its limit of 16", || limit().filter(|limit| limit.contains("16")));
    }
    let done = finish(child);
    assert_eq!(done.code(), 0, "{done:?}");
    let saturation = &records(&out.join("blkio"))[0];
    assert_eq!(saturation["set"], "saturation");
    for member in saturation["members"].as_array().unwrap() {
        for direction in ["read", "write"] {
            let per_second = member["outcome"]["load"][direction]["iops"].as_f64().unwrap();
            assert!(per_second > 1.0 && per_second < 25.0, "{direction}: {per_second} of 16 a second");
        }
    }
    assert!(groups_of(pid).is_empty());
    wait_for("the devices to go", || devices.iter().all(|device| !is_attached(device)).then_some(()));
}

#[test]
fn kill_9_leaves_no_process_and_no_device_and_the_next_run_removes_the_limits() {
    let folder = folder();
    let out = folder.path().join("run");
    let mut child = blkio_study(&out, "30s");
    let pid = child.id();
    let devices = wait_for("both guests", || Some(loops_of(pid)).filter(|devices| devices.len() == 2));
    wait_for("their limits", || (groups_of(pid).len() == 2).then_some(()));
    wait_for("the run's folder", || fs::metadata(out.join("blkio/run.json")).ok());
    let processes = children(pid);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("all of it to go", || processes.iter().all(|(pid, _)| !is_alive(*pid)).then_some(()));
    wait_for("the devices to go", || devices.iter().all(|device| !is_attached(device)).then_some(()));
    let next = blkio_study(&out, "30s");
    wait_for("the limits to go", || groups_of(pid).is_empty().then_some(()));
    signal(&next, "TERM");
    let (pid, done) = (next.id(), finish(next));
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(groups_of(pid).is_empty());
}

#[test]
fn a_system_that_this_host_cannot_have_is_marked_and_the_others_are_measured() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = ["study", "deviation", "--systems", "none,blkio", "--workload", LOAD, "--pattern", "10,20"];
    let more = ["--size", "8MiB", "--memory", "128MiB", "--repetitions", "1", "--time", "1s", "--json"];
    let child =
        virtbench().args(words).args(more).arg("--out").arg(&out).env("VIRTBENCH_FUSE", "/none").spawn();
    let done = finish(child.unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let [none, blkio] = [&json["systems"][0], &json["systems"][1]];
    assert_eq!((&none["status"], &blkio["status"]), (&"measured".into(), &"unavailable".into()));
    assert!(blkio["why"].as_str().unwrap().contains("needs root, /dev/fuse"), "{blkio}");
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert!(table.contains("- blkio: ") && table.contains("; unavailable: /dev/fuse"), "{table}");
}

#[test]
fn systems_that_are_none_and_what_does_not_go_with_them_are_refused() {
    for (words, said) in [
        (&["--systems", "magic"][..], "magic is no system"),
        (&["--systems", "none", "--backing", "raw"], "cannot be used with"),
        (&["--backing", "fence,scheduler=magic"], "scheduler=magic"),
        (&["--backing", "fence,fast=none"], "fast=none"),
        (&["--adapter", "vhost-user-blk", "--backing", "fence,attach=host"], "leave out attach=host"),
    ] {
        let done = run(&[&["study", "deviation", "--workload", LOAD], words].concat());
        assert_eq!(done.code(), 2, "{done:?}");
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
