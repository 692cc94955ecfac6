//! `virtbench study adapters` with real guests, small, and what it refuses before anything is made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::run_folder::{loops_in, records, run_json};
use crate::support::{Finished, children, finish, folder, is_alive, virtbench, wait_for};
use serde_json::Value;

/// Arguments of a small study of configurations into `out`: two points.
fn arguments(folder: &Path, out: &Path, more: &[&str]) -> Vec<String> {
    let grid = folder.join("grid.toml");
    fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let fixed = ["study", "adapters", "--size", "32MiB", "--ramp", "50ms", "--grid"];
    let mut words: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
    words.extend([grid, PathBuf::from("--out"), out.to_owned()].map(|path| path.display().to_string()));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

fn images(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out).unwrap().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "img" || ending == "qcow2"))
        .collect()
}

#[test]
fn configurations_are_measured_in_turn_and_say_what_they_are() {
    let folder = folder();
    let out = folder.path().join("run");
    let more = [
        "--setup",
        "virtio-blk",
        "--setup",
        "nvme,queues=7@qcow2,cluster=4k",
        "--setup",
        "pvscsi@loop",
        "--setup",
        "virtio-blk,packed=on@nbd",
        "--repetitions",
        "1",
        "--time",
        "150ms",
        "--booted",
        "3",
        "--json",
    ];
    let mut words = arguments(folder.path(), &out, &more);
    let done = finish(virtbench().args(&words).spawn().unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(done.json()["points_measured"], 8, "{done:?}");
    // More queues than the guest has processors are not had, and that is said.
    assert!(done.stderr.contains("nvme,queues=7@qcow2,cluster=4k: queues was to be 7"), "{}", done.stderr);
    assert!(images(&out).is_empty() && loops_in(folder.path()).is_empty());

    let run = run_json(&out);
    assert_eq!(run["plan"]["study"], "adapters");
    let drivers: Vec<&Value> =
        run["setups"].as_array().unwrap().iter().map(|setup| &setup["found"]["driver"]).collect();
    assert_eq!(drivers, ["virtio_blk", "nvme", "vmw_pvscsi", "virtio_blk"]);
    assert_eq!(run["setups"][3]["not_honoured"], Value::Array(Vec::new()), "{run}");
    let states: Vec<&Value> = run["idle"].as_array().unwrap().iter().map(|idle| &idle["guests"]).collect();
    assert_eq!(states, ["running", "stopped"]);
    assert!(run["notes"].to_string().contains("only 3 of 4 guests"), "{}", run["notes"]);

    let records = records(&out);
    assert_eq!(records.len(), 8);
    // A guest that a busy host gives no processor may do nothing for as long as is measured; not all of them in turn.
    let counted = records.iter().flat_map(|record| {
        ["total", "in_flight_at_end"].map(|part| record["outcome"][part]["operations"].as_u64())
    });
    assert!(counted.flatten().sum::<u64>() > 0, "{records:?}");
    for record in &records {
        let role = |role: &str| {
            let processes = record["processes"].as_array().unwrap();
            processes.iter().filter(|process| process["role"] == role).count()
        };
        let served = record["environment"].as_str().unwrap().ends_with("@nbd");
        assert_eq!((role("measured_guest"), role("backing")), (1, usize::from(served)), "{record}");
        assert_eq!(role("idle_guest"), 2, "{record}");
    }
    // A finished run has nothing to resume; other configurations are another run.
    words.push("--resume".to_owned());
    assert_eq!(finish(virtbench().args(&words).spawn().unwrap()).code(), 0);
    words.extend(["--setup".to_owned(), "ide".to_owned()]);
    let other = finish(virtbench().args(&words).spawn().unwrap());
    assert_eq!(other.code(), 7, "{other:?}");
    assert!(other.stderr.contains("was started with --setup"), "{}", other.stderr);
}

#[test]
fn kill_9_leaves_no_process_and_no_loop_device_and_resume_goes_on() {
    let folder = folder();
    let out = folder.path().join("run");
    let setups =
        ["--setup", "vhost-user-blk", "--setup", "virtio-blk@loop", "--repetitions", "2", "--time", "200ms"];
    let mut words = arguments(folder.path(), &out, &setups);
    let mut child = virtbench().args(&words).spawn().unwrap();
    wait_for("the first points", || (records(&out).len() >= 2).then_some(()));
    let processes = children(child.id());
    assert!(processes.iter().any(|(_, name)| name.starts_with("qemu-storage")), "{processes:?}");
    assert_eq!(loops_in(folder.path()).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("all of it to go", || processes.iter().all(|(pid, _)| !is_alive(*pid)).then_some(()));
    wait_for("the loop device to go", || (loops_in(folder.path()).is_empty()).then_some(()));
    words.push("--resume".to_owned());
    let done = finish(virtbench().args(&words).spawn().unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(records(&out).len(), 8);
    assert!(images(&out).is_empty());
}

/// Runs a study that must be refused before a folder is made.
fn refused(more: &[&str], environment: &[(&str, &str)]) -> Finished {
    let folder = folder();
    let out = folder.path().join("run");
    let words = arguments(folder.path(), &out, more);
    let done = finish(virtbench().args(&words).envs(environment.iter().copied()).spawn().unwrap());
    assert!(!out.exists(), "a folder was made although nothing could be measured: {done:?}");
    done
}

#[test]
fn impossible_configurations_are_exit_code_2_before_anything_is_made() {
    for (more, word) in [
        (["--adapters", "virtio-blk,buslogic"], "QEMU emulates no BusLogic"),
        (["--adapters", "virtio-blk,punchcard"], "no adapter \"punchcard\""),
        (["--adapters", "virtio-blk"], "1 configurations cannot be compared"),
        (["--adapters", "nvme,nvme"], "nvme is there twice"),
        (["--setup", "nvme,packed=on"], "nvme takes no packed"),
        (["--setup", "virtio-blk,aio=native,cache=writeback"], "exclude each other"),
        (["--setup", "nvme,queues=65"], "at most 64"),
        (["--setup", "virtio-blk,depth=100"], "power of two"),
        (["--setup", "virtio-blk,speed=9"], "no setting \"speed\""),
        (["--setup", "vhost-user-blk@nbd"], "another backing than nbd"),
        (["--setup", "virtio-blk@tape"], "no backing \"tape\""),
        (["--setup", "virtio-blk@qcow2,cluster=3k"], "cluster=3k"),
        (["--backings", "raw,tape"], "no backing \"tape\""),
        (["--outstanding", "0"], "--outstanding"),
        (["--booted", "0"], "--booted"),
    ] {
        let mut all = more.to_vec();
        if more[0] == "--backings" {
            all.extend(["--adapters", "virtio-blk"]);
        }
        let done = refused(&all, &[]);
        assert_eq!(done.code(), 2, "{more:?}: {done:?}");
        assert!(done.stderr.contains(word), "{more:?}: {}", done.stderr);
    }
}

#[test]
fn missing_programs_are_exit_code_4_with_the_package_that_has_them() {
    for (setup, variable, word) in [
        ("vhost-user-blk", "VIRTBENCH_STORAGE_DAEMON", "apt install qemu"),
        ("virtio-blk@nbd", "VIRTBENCH_STORAGE_DAEMON", "apt install qemu"),
        ("virtio-blk@qcow2", "VIRTBENCH_QEMU_IMG", "apt install qemu-utils"),
    ] {
        let done = refused(&["--setup", "nvme", "--setup", setup], &[(variable, "/nonexistent/program")]);
        assert_eq!(done.code(), 4, "{setup}: {done:?}");
        assert!(
            done.stderr.contains(word) && done.stderr.contains("/nonexistent/program"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn an_adapter_that_the_installed_qemu_has_not_is_exit_code_4() {
    let folder = folder();
    let script = folder.path().join("qemu");
    let text = "#!/bin/sh\nqemu-system-x86_64 \"$@\" | sed 's/pvscsi/something/g'\n";
    // Another process writes it: a file open here for writing while a test beside this one forks could
    // not be executed.
    let write = r#"printf '%s' "$1" > "$2" && chmod +x "$2""#;
    assert!(Command::new("sh").args(["-c", write, "sh", text]).arg(&script).status().unwrap().success());
    let done = refused(&["--adapters", "nvme,pvscsi"], &[("VIRTBENCH_QEMU", script.to_str().unwrap())]);
    assert_eq!(done.code(), 4, "{done:?}");
    assert!(done.stderr.contains("emulates no pvscsi"), "{}", done.stderr);
}

#[test]
fn a_guest_kernel_without_the_driver_is_exit_code_4() {
    let folder = folder();
    let kernel = virtbench_lab::find_kernel(None).unwrap_or_else(|error| panic!("{error}"));
    let modules = folder.path().join("lib/modules").join(&kernel.release);
    fs::create_dir_all(folder.path().join("boot")).unwrap();
    fs::create_dir_all(&modules).unwrap();
    let image = folder.path().join("boot/vmlinuz");
    fs::copy(&kernel.image, &image).unwrap();
    let index = fs::read_to_string(kernel.modules.join("modules.dep")).unwrap();
    let without: String =
        index.lines().filter(|line| !line.contains("mptsas")).map(|line| format!("{line}\n")).collect();
    fs::write(modules.join("modules.dep"), without).unwrap();
    let done = refused(&["--adapters", "mptsas1068,nvme", "--kernel", image.to_str().unwrap()], &[]);
    assert_eq!(done.code(), 4, "{done:?}");
    assert!(done.stderr.contains("no module mptsas"), "{}", done.stderr);
}
