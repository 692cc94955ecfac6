//! `virtbench study native-vs-vm` with real guests, small.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use crate::support::run_folder::{records, run_json};
use crate::support::{
    Finished, children, finish, folder, is_alive, run, signal, signal_pid, small_study, virtbench, wait_for,
};

fn study(arguments: &[String]) -> Child {
    virtbench().args(arguments).spawn().unwrap()
}

/// Starts a long study and waits until it has measured something in both environments.
fn running_study(folder: &Path, out: &Path) -> Child {
    let mut arguments = small_study(folder, out, "200ms", 300);
    arguments.push("--json".to_owned());
    let child = study(&arguments);
    wait_for("the first points", || (records(out).len() >= 3).then_some(()));
    child
}

fn qemu_of(child: &Child) -> u32 {
    let found = children(child.id()).into_iter().find(|(_, name)| name.starts_with("qemu"));
    found.unwrap().0
}

/// Nothing but the run's own files is left in the folder.
fn assert_clean(out: &Path) {
    let images: Vec<_> = fs::read_dir(out)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "img" || ending == "lock"))
        .collect();
    assert!(images.is_empty(), "{images:?}");
}

fn report_is_readable(out: &Path) {
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("On this host"), "the report draws no conclusion");
    assert!(fs::read_to_string(out.join("results.csv")).unwrap().lines().count() > 1);
}

/// Each point with what both sides did, and the ratio of the two.
fn numbers_are_there(json: &serde_json::Value) {
    let points = json["points"].as_array().unwrap();
    assert_eq!((points.len(), json["ratios"].as_array().unwrap().len()), (2, 2), "{json}");
    for (point, ratio) in points.iter().zip(json["ratios"].as_array().unwrap()) {
        let [native, vm] = [0, 1].map(|side| &point["sides"][side]);
        assert_eq!((&native["environment"], &vm["environment"]), (&"native".into(), &"vm".into()));
        for side in [native, vm] {
            assert_eq!(side["repetitions"], 2, "{side}");
            for number in ["latency_mean_ns", "latency_p99_ns"] {
                assert!(side[number].as_f64().unwrap() > 0.0, "{number}: {side}");
            }
            assert!(side["iops"]["value"].as_f64().unwrap() > 0.0, "{side}");
        }
        assert_eq!(point["point"], ratio["point"]);
        assert!(ratio["throughput"]["low"].as_f64() <= ratio["throughput"]["value"].as_f64());
    }
    assert!(json["mean_ratio"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let folder = folder();
    let out = folder.path().join("run");
    let mut arguments = small_study(folder.path(), &out, "100ms", 1);
    // Larger than any disk that this is run on.
    let size = arguments.iter().position(|word| word == "32MiB").unwrap();
    arguments[size] = "900TiB".to_owned();
    let done = finish(study(&arguments));
    assert_eq!(done.code(), 3, "{done:?}");
    assert!(done.stderr.contains("no room") && !out.exists(), "{}", done.stderr);
    // So the same command, put right, is no second run.
    arguments[size] = "32MiB".to_owned();
    assert_eq!(finish(study(&arguments)).code(), 0);
}

#[test]
fn native_and_vm_are_measured_and_one_page_shows_the_difference() {
    let folder = folder();
    let out = folder.path().join("run");
    // Disks that others flush stall for 1.4 s: something is to complete in each measurement.
    let mut arguments = small_study(folder.path(), &out, "2s", 2);
    arguments.extend(["--json", "--progress", "lines"].map(str::to_owned));
    let done = finish(study(&arguments));
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["points_measured"], &json["points_unavailable"]), (&8.into(), &0.into()), "{json}");
    assert!(json["headline"].as_str().unwrap().contains("of native throughput"));
    numbers_are_there(&json);
    let progress = done.stderr.lines().filter(|line| line.contains(" left: ")).count();
    assert!(progress >= 5, "the log of a job has no progress: {}", done.stderr);
    report_is_readable(&out);
    assert_clean(&out);
    let provenance = run_json(&out);
    assert!(provenance["guest"]["boot_ns"].as_u64().unwrap() > 0);
    for line in fs::read_to_string(out.join("results.jsonl")).unwrap().lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["outcome"]["total"]["operations"].as_u64().unwrap() > 0, "{line}");
        assert_eq!(record["clock"].is_object(), record["environment"] == "vm");
    }
    // The report can be written again, anywhere, and a finished run has nothing to resume.
    let html = folder.path().join("again.html");
    let again = run(&["report", out.to_str().unwrap(), "--html", html.to_str().unwrap()]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read(&html).unwrap(), fs::read(out.join("report.html")).unwrap());
    arguments.push("--resume".to_owned());
    assert_eq!(finish(study(&arguments)).code(), 0);
    assert_eq!(records(&out).len(), 8);
}

#[test]
fn where_no_accelerator_is_named_each_platform_that_says_something_is_beside_native() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = small_study(folder.path(), &out, "200ms", 1).join(" ").replace("--accelerator tcg ", "");
    let words: Vec<&str> = words.split(' ').chain(["--json"]).collect();
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    let (json, provenance) = (done.json(), run_json(&out));
    let guests: Vec<&str> = json["guests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|guest| guest["environment"].as_str().unwrap())
        .collect();
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    if provenance["guest"]["accelerator"]["name"] == "kvm" {
        assert_eq!(guests, ["vm"]);
    } else {
        assert_eq!(guests, ["uml", "tcg"], "{}", done.stderr);
        assert!(page.contains("UML / native") && page.contains("TCG / native"));
        assert!(page.contains("a system call takes"), "what a crossing costs is not said");
        assert_eq!(records(&out).len(), 6);
    }
    for guest in [&provenance["guest"], &provenance] {
        assert!(guest["crossing"]["system_call_ns"].as_u64().unwrap() > 0, "{guest}");
    }
    // What has begun is resumed with the platforms that it had.
    let resumed: Vec<&str> = words.iter().copied().chain(["--resume"]).collect();
    assert_eq!(run(&resumed).code(), 0);
    assert_clean(&out);
}

#[test]
fn kill_9_leaves_no_guest_and_resume_measures_only_what_is_missing() {
    let folder = folder();
    let out = folder.path().join("run");
    let mut child = running_study(folder.path(), &out);
    let qemu = qemu_of(&child);
    let agents: Vec<u32> = children(child.id()).into_iter().map(|(pid, _)| pid).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("QEMU and the agent to be gone", || agents.iter().all(|pid| !is_alive(*pid)).then_some(()));
    assert!(!is_alive(qemu));
    let kept = records(&out).len();
    // Readable as it is.
    let report = run(&["report", out.to_str().unwrap()]);
    assert_eq!(report.code(), 0, "{report:?}");
    // A plan with fewer repetitions is another plan, and is refused.
    let mut other = small_study(folder.path(), &out, "200ms", 2);
    other.push("--resume".to_owned());
    let refused = finish(study(&other));
    assert_eq!(refused.code(), 7, "{refused:?}");
    assert!(refused.stderr.contains("--repetitions"), "{}", refused.stderr);
    // The folder alone goes on; stopped again, it has added to what was there and repeated nothing.
    let same = ["study", "native-vs-vm", "--resume", "--out", out.to_str().unwrap()].map(str::to_owned);
    let child = study(&same);
    wait_for("more points", || (records(&out).len() >= kept + 3).then_some(()));
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    assert!(stopped.stderr.contains("--resume"), "{}", stopped.stderr);
    let text = fs::read_to_string(out.join("results.jsonl")).unwrap();
    let distinct: BTreeSet<String> = text
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {} {}", record["point"], record["repetition"], record["environment"])
        })
        .collect();
    assert_eq!(distinct.len(), text.lines().count(), "a point was measured twice");
    report_is_readable(&out);
    assert_clean(&out);
}

#[test]
fn kill_9_of_qemu_is_exit_code_6_with_the_console_and_readable_results() {
    let folder = folder();
    let out = folder.path().join("run");
    let child = running_study(folder.path(), &out);
    signal_pid(qemu_of(&child), "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("QEMU was killed by signal 9"), "{}", done.stderr);
    assert!(done.stderr.contains("last lines of its console"), "{}", done.stderr);
    report_is_readable(&out);
    assert_clean(&out);
}

#[test]
fn a_guest_that_hangs_is_started_anew_and_noted() {
    let folder = folder();
    let out = folder.path().join("run");
    let child = running_study(folder.path(), &out);
    let hung = qemu_of(&child);
    signal_pid(hung, "STOP");
    let kept = wait_for("the study to notice", || (!is_alive(hung)).then(|| records(&out).len()));
    wait_for("more points", || (records(&out).len() >= kept + 4).then_some(()));
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(done.stderr.contains("vm hangs and is started anew"), "{}", done.stderr);
    let provenance = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(provenance.contains("was started anew"), "{provenance}");
    report_is_readable(&out);
    assert_clean(&out);
}

#[test]
fn two_runs_into_one_folder_are_refused() {
    let folder = folder();
    let out = folder.path().join("run");
    let child = running_study(folder.path(), &out);
    let mut arguments = small_study(folder.path(), &out, "200ms", 300);
    let occupied = finish(study(&arguments));
    arguments.push("--resume".to_owned());
    let in_use = finish(study(&arguments));
    signal(&child, "TERM");
    assert_eq!(finish(child).code(), 130);
    for refused in [occupied, in_use] {
        assert_eq!(refused.code(), 7, "{refused:?}");
        assert!(refused.stderr.contains("in use by another run"), "{}", refused.stderr);
    }
}

fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let folder = folder();
    let out = folder.path().join("run");
    let mut all = small_study(folder.path(), &out, "100ms", 1);
    all.extend(arguments.iter().map(|word| (*word).to_owned()));
    let done = finish(virtbench().args(&all).envs(environment.iter().copied()).spawn().unwrap());
    assert!(!out.exists(), "a folder was made although nothing could be measured");
    done
}

#[test]
fn what_is_missing_is_exit_code_4_with_the_next_step() {
    let no_qemu = refused(&[], &[("VIRTBENCH_QEMU", "/nonexistent/qemu")]);
    assert_eq!(no_qemu.code(), 4, "{no_qemu:?}");
    assert!(no_qemu.stderr.to_lowercase().contains("qemu"), "{}", no_qemu.stderr);
    let no_kernel = refused(&["--kernel", "/nonexistent/vmlinuz"], &[]);
    assert_eq!(no_kernel.code(), 4, "{no_kernel:?}");
    assert!(no_kernel.stderr.contains("/nonexistent/vmlinuz"), "{}", no_kernel.stderr);
    let doctor =
        finish(virtbench().args(["doctor"]).env("VIRTBENCH_QEMU", "/nonexistent/qemu").spawn().unwrap());
    assert_eq!(doctor.code(), 4, "{doctor:?}");
    assert!(doctor.stdout.contains("MISSING") && doctor.stdout.contains("mend:"), "{}", doctor.stdout);
    // Without any program of others: what only developers need is no warning to who measures.
    let empty = folder();
    let mut bare = virtbench();
    bare.args(["doctor"]).env("VIRTBENCH_QEMU", "/nonexistent/qemu").env("PATH", empty.path());
    let bare = finish(bare.spawn().unwrap()).stdout;
    let (measuring, developing) =
        bare.split_once("needed only to develop").unwrap_or_else(|| panic!("{bare}"));
    for name in ["fio ", "Chromium "] {
        assert!(developing.contains(name) && !measuring.contains(name), "{name}: {bare}");
    }
    assert!(measuring.contains("warning  qemu-img") && !developing.contains("warning"), "{bare}");
}

#[test]
fn impossible_plans_are_exit_code_2_before_anything_is_made() {
    for (arguments, word) in [
        (vec!["--adapter", "punchcard"], "virtio-blk"),
        (vec!["--grid", "/nonexistent.toml"], "nonexistent.toml"),
        (vec!["--outstanding", "0"], "--outstanding"),
        (vec!["--resume", "--out", "x", "--size", "1k"], "--size"),
    ] {
        let folder = folder();
        let out = folder.path().join("run");
        let mut all = small_study(folder.path(), &out, "100ms", 1);
        if arguments.contains(&"--grid") {
            let position = all.iter().position(|word| word == "--grid").unwrap();
            all.drain(position..position + 2);
        }
        if arguments.contains(&"--out") {
            let position = all.iter().position(|word| word == "--out").unwrap();
            all.drain(position..position + 2);
        }
        if arguments.contains(&"--size") {
            let position = all.iter().position(|word| word == "--size").unwrap();
            all.drain(position..position + 2);
        }
        all.extend(arguments.iter().map(|word| (*word).to_owned()));
        let done = finish(study(&all));
        assert_eq!(done.code(), 2, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(word), "{arguments:?}: {}", done.stderr);
        assert!(!out.exists());
    }
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let folder = folder();
    let out = folder.path().join("thesis");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("chapter1.tex"), "x").unwrap();
    let done = finish(study(&small_study(folder.path(), &out, "100ms", 1)));
    assert_eq!(done.code(), 7, "{done:?}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "a lock file was left in a foreign folder");
    let report = run(&["report", out.to_str().unwrap()]);
    assert_eq!(report.code(), 7, "{report:?}");
}

#[test]
fn doctor_tells_what_is_here() {
    let json = run(&["doctor", "--json"]).json();
    assert_eq!(json["ready"], true, "{json}");
    let names: Vec<&str> =
        json["checks"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    for name in ["QEMU", "guest kernel", "accelerator", "agent", "io_uring"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn the_manual_and_completions_are_generated() {
    let folder = folder();
    assert_eq!(run(&["man", folder.path().to_str().unwrap()]).code(), 0);
    let page = fs::read_to_string(folder.path().join("virtbench.1")).unwrap();
    assert!(page.contains("EXIT STATUS") && page.contains("doctor"), "{page}");
    assert!(fs::read_dir(folder.path()).unwrap().count() >= 5);
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).stdout.contains("native-vs-vm"), "{shell}");
    }
}

/// A guest that boots for as long as anybody waits.
#[test]
fn a_stop_while_a_guest_boots_ends_it_at_once() {
    let folder = folder();
    let qemu = folder.path().join("qemu");
    fs::write(&qemu, "#!/bin/sh\ncase \"$*\" in *--version*) echo 'QEMU emulator version 7.2.0';; *help*) exec qemu-system-x86_64 \"$@\";; *) exec sleep 600;; esac\n").unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["load", "--environment", "qemu:?accelerator=tcg", "--size", "8MiB", "--time", "1s"];
    let child =
        virtbench().args(words).current_dir(folder.path()).env("VIRTBENCH_QEMU", &qemu).spawn().unwrap();
    let sleeps = || children(child.id()).iter().any(|(_, name)| name == "sleep");
    wait_for("the guest to be started", || sleeps().then_some(()));
    let stopped = Instant::now();
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(stopped.elapsed().as_secs() < 10, "{:?}", stopped.elapsed());
}
