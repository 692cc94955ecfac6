//! `virtbench sweep`: what runs have left on a hypervisor, from wherever they ran.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::libvirtd::Libvirtd;
use crate::support::{Finished, children, folder, run, signal, wait_for};

fn sweep(libvirtd: &Libvirtd, more: &[&str]) -> Finished {
    let platform = format!("libvirt+{}", libvirtd.connection());
    run(&[&["sweep", "--platform", &platform], more].concat())
}

fn runs(libvirtd: &Libvirtd) -> Vec<Value> {
    let finished = sweep(libvirtd, &["--json"]);
    finished.json()["runs"].as_array().unwrap().clone()
}

/// A run of operations within namespaces and with a host name of its own, as in a container, until it operates.
fn in_a_container(libvirtd: &Libvirtd, out: &Path) -> Child {
    let study = format!(
        "hostname container; exec {} study operations --platform 'libvirt+{}' --accelerator tcg --disk 2MiB --vms 2 --time 10m \
         --ramp 0s --leave-out --rate 60/min --out {}",
        env!("CARGO_BIN_EXE_virtbench"),
        libvirtd.connection(),
        out.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", &study]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("operations", || out.join("operations").exists().then_some(()));
    child
}

/// Nothing is heard of any run for long.
fn age(libvirtd: &Libvirtd) {
    for domain in libvirtd.domains() {
        // One that runs keeps what it was started with.
        libvirtd.virsh(&["destroy", &domain]);
        let xml = libvirtd.xml(&domain);
        let seen = xml.split("seen_s='").nth(1).or_else(|| xml.split("seen_s=\"").nth(1)).unwrap();
        let seen: String = seen.chars().take_while(char::is_ascii_digit).collect();
        libvirtd.define(&xml.replace(&seen, "1000000000"));
    }
}

#[test]
fn what_a_run_has_left_that_was_killed_in_a_container_is_found_and_removed_with_consent() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let nothing = sweep(&libvirtd, &[]);
    assert!(nothing.code() == 0 && nothing.stdout.contains("nothing is left"), "{nothing:?}");
    let mut killed = in_a_container(&libvirtd, &temp.path().join("killed"));
    // The kernel gives the number of a namespace that has gone to the next one, whose run then knows that this one has ended.
    let inside = children(killed.id()).first().unwrap().0;
    let _namespace = File::open(format!("/proc/{inside}/ns/pid")).unwrap();
    let live = runs(&libvirtd);
    assert_eq!(
        (live.len(), &live[0]["host"], &live[0]["is_dead"]),
        (1, &"container".into(), &false.into()),
        "{live:?}"
    );
    let all = libvirtd.domains().len();
    let stays = sweep(&libvirtd, &["--yes"]);
    assert!(stays.code() == 0 && stays.stdout.contains("a run that lives keeps what it has"), "{stays:?}");
    assert_eq!(libvirtd.domains().len(), all, "what a live run has is not removed");
    signal(&killed, "KILL");
    killed.wait().unwrap();

    age(&libvirtd);
    let (before, volumes) = (libvirtd.domains().len(), libvirtd.volumes().len());
    let shown = sweep(&libvirtd, &[]);
    assert_eq!(shown.code(), 12, "{shown:?}");
    assert!(shown.stdout.contains("dead") && shown.stdout.contains("on container"), "{shown:?}");
    assert!(shown.stderr.contains("--yes"), "{shown:?}");
    assert_eq!(libvirtd.domains().len(), before, "without consent nothing is removed");
    let other = sweep(&libvirtd, &["--yes", "--label", "virtbench-no-such"]);
    assert!(other.code() == 0 && libvirtd.domains().len() == before, "{other:?}");

    let live = in_a_container(&libvirtd, &temp.path().join("live"));
    let label = libvirtd
        .domains()
        .iter()
        .filter_map(|name| name.strip_suffix(".shared"))
        .map(str::to_owned)
        .collect::<Vec<_>>();
    assert_eq!(label.len(), 2, "{label:?}");
    let removed = sweep(&libvirtd, &["--yes", "--json"]);
    assert_eq!(removed.code(), 0, "{removed:?}");
    assert_eq!(removed.json()["removed"], before + volumes, "{removed:?}");
    let left = runs(&libvirtd);
    assert_eq!((left.len(), &left[0]["is_dead"]), (1, &false.into()), "{left:?}");
    live_ended(live);
}

/// Ends a run with the namespace that it is in.
fn live_ended(mut child: Child) {
    signal(&child, "KILL");
    child.wait().unwrap();
}

#[test]
fn what_is_no_platform_cannot_be_swept() {
    let refused = |platform: &str, code: i32, word: &str| {
        let finished = run(&["sweep", "--platform", platform]);
        assert!(finished.code() == code && finished.stderr.contains(word), "{finished:?}");
    };
    refused("qemu:///system", 2, "give libvirt+URI");
    refused("vsphere+https://h/sdk", 2, "lacks a user");
    refused("libvirt+qemu:///system?socket=/nowhere/sock", 6, "cannot be reached");
}
