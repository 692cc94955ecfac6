//! `virtbench study operations` on a fake Proxmox VE.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::sshd::Sshd;
use crate::support::{begin_operations, finish, folder, run, texts, virtbench, wait_for};
use serde_json::{Value, json};
use virtbench_proxmox::{Address, Limit, LocalProxmox, Proxmox, Secret};

fn start(local: &LocalProxmox, out: &Path, more: &[&str]) -> Child {
    begin_operations(&local.argument(), out, more)
}

pub fn names(local: &LocalProxmox) -> Vec<String> {
    let limit = || Limit::at(Instant::now() + Duration::from_secs(60));
    let address = Address::parse(&local.argument()).unwrap();
    let secret = Secret::new(fs::read_to_string(local.password_file()).unwrap());
    let server = Proxmox::connect(&address, secret, limit()).unwrap();
    server.machines(limit()).unwrap().into_iter().map(|machine| machine.name).collect()
}

#[test]
fn operations_of_proxmox_are_measured_and_what_a_killed_run_has_left_is_swept() {
    let guests = json!([
        {"vmid": 100, "name": "other", "node": "pve1", "status": "running"},
        {"vmid": 101, "name": "elsewhere", "node": "pve2"},
    ]);
    let (local, temp) = (LocalProxmox::start(&guests, 0.0).unwrap(), folder());
    let mut killed =
        start(&local, &temp.path().join("killed"), &["--vms", "4", "--time", "10m", "--rate", "120/min"]);
    let log = temp.path().join("killed/operations");
    wait_for("operations", || log.exists().then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&local).len() > 2, "a kill leaves its VMs");
    let out = temp.path().join("run");
    let mix = temp.path().join("mix.toml");
    let paper = "power_on = 8\npower_off = 4\nclone = 2\nmigrate = 8\nremove = 2\ncreate_snapshot = 1\ndelete_snapshot = 1\nreconfigure = 4";
    let besides = "shutdown = 4\nreset = 2\nrevert_snapshot = 1\nmove_disk = 2\nresize_disk = 2";
    fs::write(&mix, format!("{paper}\n{besides}\n")).unwrap();
    let mix = mix.display().to_string();
    let words = ["--vms", "6", "--time", "6s", "--piece", "3s", "--clients", "4", "--json", "--mix", &mix];
    let finished = finish(start(&local, &out, &words));
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let operations = summary["steps"][0]["operations"].as_object().unwrap();
    let failed = |one: &Value| one["failed"].as_object().unwrap().len();
    assert!(operations.values().all(|one| failed(one) == 0), "{summary}");
    assert_eq!(
        operations.len(),
        13,
        "the mix of [Platform 2014], Table 2, and what is done here besides: {summary}"
    );
    let management = &summary["steps"][0]["management"][0];
    assert!(management["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{summary}");
    let mut left = names(&local);
    left.sort();
    assert_eq!(left, ["elsewhere", "other"], "only strangers are left");
    let told = texts(&out);
    assert!(
        told.contains("Proxmox VE") && !told.contains("test-only-secret"),
        "a password is in the run folder"
    );
}

/// A template whose clones tell the loopback's address as their guest's.
pub fn with_template() -> LocalProxmox {
    let interfaces = json!([{"name": "eth0", "ip-addresses": [{"ip-address": "127.0.0.1"}]}]);
    let config = json!({"scsi0": "local-lvm:base-9000-disk-0,size=1G", "agent": "1"});
    let guests = json!([{
        "vmid": 9000, "name": "golden", "template": true, "config": config, "agent": {"interfaces": interfaces},
    }]);
    LocalProxmox::start(&guests, 0.0).unwrap()
}

#[test]
fn a_vm_of_proxmox_is_a_machine_that_is_made_reached_and_removed() {
    let (local, sshd, temp) = (with_template(), Sshd::start(), folder());
    let (work, address) = (sshd.path("guest").display().to_string(), sshd.address("guest"));
    let config = address.split_once("?config=").unwrap().1;
    let (server, port) = (local.argument(), sshd.port());
    let vm = format!("{server}&template=golden&ssh-port={port}&ssh-folder={work}&ssh-config={config}");
    let grid = temp.path().join("grid.toml");
    fs::write(&grid, "blocks = [\"4k\"]\nreads = [100]\nrandoms = [100]\n").unwrap();
    let out = temp.path().join("run").display().to_string();
    let words = [
        "study",
        "native-vs-vm",
        "--grid",
        &grid.display().to_string(),
        "--repetitions",
        "1",
        "--size",
        "4MiB",
        "--ramp",
        "0s",
        "--time",
        "200ms",
        "--vm",
        &vm,
        "--out",
        &out,
        "--json",
    ]
    .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let compared = run(&words);
    assert_eq!(compared.code(), 0, "{compared:?}");
    let summary = compared.json();
    assert!(
        summary.to_string().contains("\"native\"") && summary.to_string().contains("\"vm\""),
        "{summary}"
    );
    let told = texts(Path::new(&out));
    assert!(told.contains("template=golden") && told.contains("VMs are clones of golden"), "{compared:?}");
    assert!(!told.contains("test-only-secret"), "a password is in the run folder");
    assert_eq!(names(&local), ["golden"], "the VM goes with the run");
    assert!(sshd.is_clean("guest"), "and nothing stays in its guest");
    // A run that is killed leaves a VM that says whose it was, which is swept.
    let killed_out = temp.path().join("killed").display().to_string();
    let mut more = words.clone();
    let at = more.iter().position(|word| *word == out).unwrap();
    more[at] = &killed_out;
    let time = more.iter().position(|word| *word == "200ms").unwrap();
    more[time] = "10m";
    let mut killed = virtbench().args(&more).spawn().unwrap();
    wait_for("a VM", || (names(&local).len() > 1).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&local).len() > 1, "a kill leaves what it made");
    let swept = run(&["sweep", "--platform", &local.argument(), "--yes"]);
    assert_eq!((swept.code(), names(&local)), (0, vec!["golden".to_owned()]), "{swept:?}");
}

#[test]
fn what_cannot_be_a_platform_of_proxmox_is_said_before_anything_is_done() {
    let refused = |platform: &str, more: &[&str], word: &str| {
        let words = [&["study", "operations", "--platform", platform][..], more].concat();
        let finished = run(&words);
        assert!(finished.code() == 2 && finished.stderr.contains(word), "{finished:?}");
        assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    };
    refused("proxmox:root@pam:hunter2@h", &[], "VIRTBENCH_PROXMOX_PASSWORD");
    refused("proxmox:root@h", &[], "has a realm");
    refused("proxmox:h", &["--destination", "libvirt+qemu:///system"], "--destination");
    refused("proxmox:h", &["--clone", "full,reflink"], "full and linked clones");
}
