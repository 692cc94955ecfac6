//! `virtbench study operations` on a simulated vCenter.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::{Finished, begin_operations, finish, folder, run, texts, wait_for};
use serde_json::Value;
use virtbench_vsphere::{Address, Inventory, LocalVcenter, Vsphere};

fn start(vcenter: &LocalVcenter, out: &Path, more: &[&str]) -> Child {
    begin_operations(&vcenter.argument(), out, more)
}

fn study(vcenter: &LocalVcenter, out: &Path, more: &[&str]) -> Finished {
    finish(start(vcenter, out, more))
}

fn inventory(vcenter: &LocalVcenter) -> Inventory {
    let until = || Instant::now() + Duration::from_secs(20);
    let address = Address::parse(&vcenter.argument()).unwrap();
    let server = Vsphere::connect(&address, vcenter.password(), until()).unwrap();
    server.inventory(until()).unwrap()
}

#[test]
fn operations_of_a_vcenter_are_measured_and_nothing_is_left() {
    let delays =
        ["--hosts", "3", "--vms", "5", "--task-delay", "PowerOnVM_Task=60ms", "--delay", "CloneVM_Task=40ms"];
    let (vcenter, temp) = (LocalVcenter::start(&delays).unwrap(), folder());
    let out = temp.path().join("run");
    let words = ["--vms", "6", "--time", "6s", "--piece", "3s", "--clients", "4", "--json"];
    let finished = study(&vcenter, &out, &words);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let operations = summary["steps"][0]["operations"].as_object().unwrap();
    let failed = |one: &Value| one["failed"].as_object().unwrap().len();
    assert!(operations.values().all(|one| failed(one) == 0), "{summary}");
    let simulator = &summary["steps"][0]["management"][0];
    assert!(simulator["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{summary}");
    assert_eq!(operations.len(), 8, "the mix of [Platform 2014], Table 2: {summary}");
    let phase = |operation: &str, phase: &str| operations[operation]["phases_ns"][phase].as_f64().unwrap();
    assert!(phase("power_on", "running") > 3e7 && phase("power_off", "running") < 3e7, "{summary}");
    assert!(phase("clone", "accepted") > 3e7 && phase("migrate", "seen") > 0.0, "{summary}");
    let left = inventory(&vcenter);
    assert!(left.len() == 5 && left.iter().all(|(_, machine)| machine.label.is_none()), "{left:?}");
    let told = texts(&out);
    assert!(
        told.contains("vCenter") && !told.contains("test-only-secret"),
        "a password is in the run folder"
    );
}

#[test]
fn what_a_killed_run_has_left_on_a_vcenter_is_swept_by_the_next() {
    let (vcenter, temp) = (LocalVcenter::start(&["--vms", "3"]).unwrap(), folder());
    let mut killed =
        start(&vcenter, &temp.path().join("killed"), &["--vms", "4", "--time", "10m", "--rate", "120/min"]);
    let log = temp.path().join("killed/operations");
    wait_for("operations", || log.exists().then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(inventory(&vcenter).len() > 3, "a kill leaves its VMs");
    let words = ["--vms", "2", "--time", "2s", "--clients", "1"];
    let next = study(&vcenter, &temp.path().join("next"), &words);
    assert_eq!(next.code(), 0, "{next:?}");
    assert_eq!(inventory(&vcenter).len(), 3, "only strangers are left");
}

#[test]
fn what_cannot_be_a_platform_of_vsphere_is_said_before_anything_is_done() {
    let refused = |platform: &str, more: &[&str], word: &str| {
        let words = [&["study", "operations", "--platform", platform][..], more].concat();
        let finished = run(&words);
        assert!(finished.code() == 2 && finished.stderr.contains(word), "{finished:?}");
        assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    };
    let good = "vsphere+https://u@h/sdk";
    refused("vsphere+https://u:hunter2@h/sdk", &[], "VIRTBENCH_VSPHERE_PASSWORD");
    refused("vsphere+http://u@h/sdk", &[], "without TLS");
    refused(good, &["--destination", "libvirt+qemu:///system"], "--destination");
    refused(good, &["--clone", "full,reflink"], "full and linked clones");
}
