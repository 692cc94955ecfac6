//! Outages of libvirtd while its VMs are operated on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::records;
use crate::support::{finish, folder, signal_pid, virtbench, wait_for};

/// A study of one kind of operation, once its first piece has begun.
fn started(libvirtd: &Libvirtd, folder: &Path, more: &[&str]) -> (Child, PathBuf) {
    let (out, mix) = (folder.join("run"), folder.join("mix.toml"));
    fs::write(&mix, "reconfigure = 1\n").unwrap();
    let platform = format!("libvirt+{}", libvirtd.connection());
    let mut command = virtbench();
    command.args(["study", "operations", "--accelerator", "tcg", "--disk", "2MiB", "--ramp", "0s"]);
    command.args(["--vms", "2", "--json", "--platform", &platform]).args(more);
    let child = command.arg("--mix").arg(mix).arg("--out").arg(&out).spawn().unwrap();
    wait_for("operations", || out.join("operations").exists().then_some(()));
    (child, out)
}

/// All operations that were logged.
fn lines(out: &Path) -> Vec<Value> {
    let logs = fs::read_dir(out.join("operations")).unwrap().flatten();
    let texts: Vec<String> = logs.map(|log| fs::read_to_string(log.path()).unwrap()).collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_libvirtd_that_is_killed_and_comes_back_is_a_gap_in_a_run_and_not_its_end() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let more = ["--rate", "120/min", "--time", "24s", "--piece", "8s"];
    let (child, out) = started(&libvirtd, temp.path(), &more);
    let server = libvirtd.server();
    signal_pid(server, "KILL");
    let finished = finish(child);
    // The piece with the gap is a result if nine tenths of it reached the platform.
    let records = records(&out);
    let is_short = records.iter().any(|record| record["status"] == "incomplete");
    assert_eq!(finished.code(), if is_short { 10 } else { 0 }, "{finished:?}");
    let last = records.last().unwrap();
    let done = last["operations"]["reconfigure"]["done"].as_u64().unwrap();
    assert!(last["piece"] == 2 && last["status"] == "measured", "{last}");
    assert!(done > 5 && done * 10 >= last["intended"].as_u64().unwrap() * 9, "{last}");
    assert_ne!(libvirtd.server(), server);
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
}

#[test]
fn while_libvirtd_stands_still_the_time_is_not_virtbench_s_own() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let (child, out) = started(&libvirtd, temp.path(), &["--clients", "1", "--time", "6s"]);
    let server = libvirtd.server();
    signal_pid(server, "STOP");
    sleep(Duration::from_millis(500));
    signal_pid(server, "CONT");
    let finished = finish(child);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let lines = lines(&out);
    // In the order of the phases: waiting for a client, virtbench itself, and what is the platform's.
    let phases = |line: &Value| -> Vec<f64> {
        line["phases_ns"].as_array().unwrap().iter().map(|phase| phase.as_f64().unwrap_or(0.0)).collect()
    };
    let phases: Vec<Vec<f64>> = lines.iter().map(phases).collect();
    let stood = phases.iter().map(|phases| phases[1..].iter().sum()).fold(0.0, f64::max);
    let own = phases.iter().map(|phases| phases[1]).fold(0.0, f64::max);
    assert!(stood > 400e6, "an operation waited for it: {stood}");
    assert!(own < 200e6, "virtbench's own share: {own}");
}
