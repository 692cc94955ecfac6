//! Guests on hypervisors that run already, over real libvirtd.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::{records, run_json};
use crate::support::sshd::Sshd;
use crate::support::{Finished, finish, folder, is_alive, run, signal, signal_pid, virtbench, wait_for};

/// Arguments of a small study of these environments into `out`.
fn arguments(out: &Path, environments: &[String], time: &str, repetitions: &str) -> Vec<String> {
    let grid = out.with_extension("toml");
    fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let mut words: Vec<String> =
        ["study", "compare", "--size", "8MiB", "--ramp", "20ms", "--time", time].map(str::to_owned).into();
    words.extend(["--repetitions".to_owned(), repetitions.to_owned()]);
    for environment in environments {
        words.extend(["--environment".to_owned(), environment.clone()]);
    }
    words.extend(["--grid".into(), grid.display().to_string(), "--out".into(), out.display().to_string()]);
    words
}

fn study(out: &Path, environments: &[String], more: &[&str]) -> Finished {
    let mut words = arguments(out, environments, "200ms", "2");
    words.extend(more.iter().map(|word| (*word).to_owned()));
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A study that goes on for long, in the middle of its points.
fn running(libvirtd: &Libvirtd, out: &Path) -> Child {
    let environments = [format!("hv={}", libvirtd.environment("")), "native:".to_owned()];
    let child = virtbench().args(arguments(out, &environments, "200ms", "300")).spawn().unwrap();
    wait_for("the first points", || (records(out).len() >= 3).then_some(()));
    child
}

#[test]
fn guests_of_two_hypervisors_are_compared_and_nothing_is_left() {
    let (one, two, folder) = (Libvirtd::start(), Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let environments = [
        format!("one={}", one.environment("")),
        format!("two={}", two.environment("&disk=virtio-scsi,queues=2&vcpus=2")),
    ];
    let done = study(&out, &environments, &["--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["points_measured"], &json["points_unavailable"]), (&8.into(), &0.into()), "{json}");
    for point in json["points"].as_array().unwrap() {
        for (side, name) in ["one", "two"].iter().enumerate() {
            let side = &point["sides"][side];
            assert_eq!(side["environment"], *name);
            assert!(side["iops"]["value"].as_f64().unwrap() > 0.0, "{side}");
        }
    }
    let run = run_json(&out);
    let machines = run["machines"].as_array().unwrap();
    for (machine, (name, vcpus, adapter)) in
        machines.iter().zip([("one", 1, "virtio-blk"), ("two", 2, "virtio-scsi")])
    {
        assert_eq!(machine["environment"], name);
        assert!(machine["facts"]["processors"].as_u64().unwrap() > 0, "{machine}");
        assert_eq!(machine["facts"]["disk"]["filesystem"], "storage pool of kind dir");
        let guest = &machine["guest"];
        assert_eq!((&guest["vcpus"], &guest["adapter"]), (&vcpus.into(), &adapter.into()), "{guest}");
        assert!(guest["qemu"].as_str().unwrap().contains("by libvirt"), "{guest}");
        assert!(guest["command_line"][0].as_str().unwrap().contains("<domain type='qemu'"), "{guest}");
    }
    let first = &records(&out)[0];
    assert!(first.to_string().contains("\"processors\":"), "{first}");
    assert!(one.is_clean() && two.is_clean(), "something is left");
}

#[test]
fn a_load_is_applied_in_a_guest_of_a_hypervisor_by_its_name() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let names = format!("[environments]\nhv = \"{}\"\n", libvirtd.environment(""));
    fs::write(folder.path().join("virtbench.toml"), names).unwrap();
    let words = ["load", "--size", "8MiB", "--ramp", "20ms", "--time", "1s", "--environment", "hv", "--json"];
    let done = finish(virtbench().args(words).current_dir(folder.path()).spawn().unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let job = if json["jobs"].is_array() { &json["jobs"][0] } else { &json };
    assert!(job["total"]["iops"].as_f64().unwrap() > 0.0, "{json}");
    assert!(libvirtd.is_clean());
}

#[test]
fn a_hypervisor_elsewhere_is_reached_over_ssh() {
    let libvirtd = Libvirtd::start();
    // The other machine sees that hypervisor's folders as its own.
    let folder = libvirtd.path("run");
    fs::create_dir(folder.join("sshd")).unwrap();
    let sshd = Sshd::with("", &format!("mount --bind {} /run", folder.display()));
    let config = sshd.address("x").split_once("config=").unwrap().1.to_owned();
    let ssh = sshd.path("ssh");
    fs::write(&ssh, format!("#!/bin/sh\nexec ssh -F {config} \"$@\"\n")).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).unwrap();
    let environment = format!(
        "libvirt+qemu+ssh://root@metal/system?command={}&memory=128MiB&accelerator=tcg&disk=ahci",
        ssh.display()
    );
    let words =
        ["load", "--size", "8MiB", "--ramp", "20ms", "--time", "100ms", "--environment", &environment];
    let done = run(&words);
    assert!(done.code() == 0 && done.stdout.contains("[metal] on /dev/sda"), "{done:?}");
    assert!(libvirtd.is_clean());
    let stranger = sshd.address_with("x", "stranger", sshd.port());
    let config = stranger.split_once("config=").unwrap().1;
    fs::write(&ssh, format!("#!/bin/sh\nexec ssh -F {config} \"$@\"\n")).unwrap();
    let done = run(&words);
    assert!(done.code() == 6 && done.stderr.contains("Permission denied"), "{done:?}");
}

#[test]
fn what_a_hypervisor_cannot_do_is_said() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let refused = |address: &str, code: i32, words: &[&str]| {
        let done = study(&out, &[format!("hv={address}"), "native:".to_owned()], &[]);
        assert_eq!(done.code(), code, "{done:?}");
        for word in words {
            assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
        }
        assert!(!out.exists(), "a failed start left a folder");
        assert!(libvirtd.is_clean(), "a failed start left something there");
    };
    let environment = |settings: &str| libvirtd.environment(settings);
    refused("libvirt+test:///default", 6, &["kind TEST", "ssh://"]);
    refused(
        "libvirt+qemu:///system?socket=/nowhere/sock",
        6,
        &["cannot be reached", "/nowhere/sock", "virsh -c"],
    );
    refused(&environment("&pool=swimming"), 6, &["no storage pool swimming", "default", "pool-create-as"]);
    refused(&environment("&pool=asleep"), 6, &["asleep is not active", "pool-start asleep"]);
    refused(&environment("&scoket=x"), 2, &["take no scoket"]);
    refused(&environment("&disk=nvme"), 2, &["nvme", "virtio-scsi"]);
    refused("libvirt+qemu", 2, &["is no environment"]);
    let words = ["load", "--size", "900TiB", "--environment", &environment("")];
    let done = run(&words);
    assert!(done.code() == 6 && done.stderr.contains("are needed"), "{done:?}");
    let mut command = virtbench();
    command
        .args(["load", "--environment", &environment("")])
        .env("VIRTBENCH_LIBVIRT", "/nowhere/libvirt.so.0");
    let done = finish(command.spawn().unwrap());
    assert!(done.code() == 4 && done.stderr.contains("install libvirt0"), "{done:?}");
    assert!(libvirtd.is_clean());
}

#[test]
fn a_guest_that_does_not_come_up_shows_its_console() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let little = libvirtd.environment("").replace("128MiB", "72MiB");
    let done = study(&out, &[format!("hv={little}"), "native:".to_owned()], &[]);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("console") && done.stderr.contains("  | "), "{}", done.stderr);
    assert!(!out.exists() && libvirtd.is_clean());
}

#[test]
fn what_is_not_ours_is_never_touched() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let label = "virtbench-0123456789-0123456789-1-1-0";
    for name in ["virtbench-results", &format!("{label}-backup"), "disk"] {
        fs::write(libvirtd.path("pool").join(name), "theirs").unwrap();
    }
    // A name of ours, but without our element.
    for name in ["virtbench", label] {
        let xml = format!(
            "<domain type='qemu'><name>{name}</name><memory>65536</memory><os><type>hvm</type></os></domain>"
        );
        fs::write(libvirtd.path("theirs.xml"), xml).unwrap();
        let said = libvirtd.virsh(&["define", &libvirtd.path("theirs.xml").display().to_string()]);
        assert!(said.status.success(), "{said:?}");
    }
    let done = study(
        &folder.path().join("run"),
        &[format!("hv={}", libvirtd.environment("")), "native:".to_owned()],
        &[],
    );
    assert_eq!(done.code(), 0, "{done:?}");
    let (mut volumes, mut domains) = (libvirtd.volumes(), libvirtd.domains());
    volumes.sort();
    domains.sort();
    assert_eq!(volumes, ["disk", &format!("{label}-backup"), "virtbench-results"]);
    assert_eq!(domains, ["virtbench", label]);
}

#[test]
fn a_killed_controller_leaves_no_guest_and_the_next_run_removes_the_rest() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let mut child = running(&libvirtd, &out);
    assert_eq!((libvirtd.guests().len(), libvirtd.volumes().len()), (1, 3));
    signal(&child, "KILL");
    child.wait().unwrap();
    wait_for("the guest to end", || libvirtd.guests().is_empty().then_some(()));
    assert_eq!(libvirtd.volumes().len(), 3, "nobody could remove them");
    let before = records(&out).len();
    let shown = out.display().to_string();
    let again = virtbench().args(["study", "compare", "--resume", "--out", &shown]).spawn().unwrap();
    wait_for("points of the resumed run", || (records(&out).len() >= before + 3).then_some(()));
    assert_eq!(libvirtd.volumes().len(), 3, "those of the killed run are gone");
    signal(&again, "INT");
    let done = finish(again);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(run_json(&out)["notes"].to_string().contains("removed 4 domains and volumes"));
    assert!(libvirtd.is_clean());
}

#[test]
fn a_controller_that_falls_silent_loses_its_guest() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let child = running(&libvirtd, &out);
    signal(&child, "STOP");
    wait_for("the guest to end", || libvirtd.guests().is_empty().then_some(()));
    signal(&child, "CONT");
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("nothing was heard of the controller"), "{}", done.stderr);
    assert!(libvirtd.is_clean());
}

#[test]
fn a_guest_that_somebody_ends_is_an_error_and_what_was_measured_stays() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let child = running(&libvirtd, &out);
    assert!(libvirtd.virsh(&["destroy", &libvirtd.guests()[0]]).status.success());
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("hv: the domain ended"), "{}", done.stderr);
    assert!(records(&out).len() >= 3 && out.join("report.html").exists());
    assert!(libvirtd.is_clean());
}

#[test]
fn a_guest_that_somebody_pauses_is_an_error_within_seconds() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let environment = format!("hv={}", libvirtd.environment(""));
    let words = ["load", "--size", "8MiB", "--ramp", "100ms", "--time", "10m", "--environment", &environment];
    let child = virtbench().args(words).current_dir(folder.path()).spawn().unwrap();
    wait_for("the guest", || libvirtd.guests().first().cloned());
    // From the agent's greeting on its processors do not wait any more.
    let guest = libvirtd.guests()[0].clone();
    let state = || String::from_utf8(libvirtd.virsh(&["domstate", &guest]).stdout).unwrap();
    wait_for("the guest to run", || state().contains("running").then_some(()));
    assert!(libvirtd.virsh(&["suspend", &guest]).status.success());
    let begun = Instant::now();
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("somebody paused the guest (paused)"), "{}", done.stderr);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert!(libvirtd.is_clean());
}

#[test]
fn a_server_that_is_killed_is_an_error_and_nothing_is_left_once_it_is_back() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let child = running(&libvirtd, &out);
    let server = libvirtd.server();
    signal_pid(server, "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("the connection to libvirt was lost"), "{}", done.stderr);
    assert!(records(&out).len() >= 3 && out.join("report.html").exists());
    wait_for("libvirtd to come back", || libvirtd.virsh(&["list"]).status.success().then_some(()));
    wait_for("the guest to end", || libvirtd.guests().is_empty().then_some(()));
    assert!(!is_alive(server));
    // What the controller could not remove, because nobody was there, the next run does.
    let done = study(
        &folder.path().join("next"),
        &[format!("hv={}", libvirtd.environment("")), "native:".to_owned()],
        &[],
    );
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(libvirtd.is_clean());
}

#[test]
fn two_controllers_work_on_one_hypervisor() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let children = paths.each_ref().map(|out| {
        let environments = [format!("hv={}", libvirtd.environment("")), "native:".to_owned()];
        virtbench().args(arguments(out, &environments, "50ms", "3")).spawn().unwrap()
    });
    for (child, out) in children.into_iter().zip(&paths) {
        let done = finish(child);
        assert_eq!((done.code(), records(out).len()), (0, 12), "{done:?}");
    }
    assert!(libvirtd.is_clean());
}

#[test]
fn a_stop_while_a_disk_is_uploaded_ends_it_at_once() {
    let (libvirtd, folder) = (Libvirtd::start(), folder());
    let out = folder.path().join("run");
    let mut words = arguments(&out, &[libvirtd.environment(""), "native:".to_owned()], "50ms", "1");
    let size = words.iter().position(|word| word == "8MiB").unwrap();
    // Larger than what is sent until the signal comes.
    words[size] = "2GiB".into();
    let child = virtbench().args(words).spawn().unwrap();
    let growing = || {
        let disk = libvirtd.volumes().into_iter().find(|name| name.ends_with("-disk"))?;
        (fs::metadata(libvirtd.path("pool").join(disk)).ok()?.blocks() > 0).then_some(())
    };
    wait_for("the disk to grow", growing);
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(libvirtd.is_clean());
}

/// The library is loaded when it is used: the command runs where there is none.
#[test]
fn the_command_does_not_need_libvirt() {
    let needs = Command::new("ldd").arg(env!("CARGO_BIN_EXE_virtbench")).output().unwrap();
    let needs = String::from_utf8(needs.stdout).unwrap();
    assert!(needs.contains("libc.so") && !needs.contains("libvirt"), "{needs}");
}
