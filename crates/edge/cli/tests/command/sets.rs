//! `virtbench study neighbours` and `study deviation` with real guests, small.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Child;

use crate::support::run_folder::records;
use crate::support::{
    Finished, children, finish, folder, is_alive, run, signal, signal_pid, virtbench, wait_for,
};

/// A workload that takes a second, in guests of one processor.
const MEMORY: &str = "memory:kernel=50ms,runs=2,array=1MiB,stores=regular";

fn start(out: &Path, words: &[&str]) -> Child {
    let mut command = virtbench();
    command.arg("study").args(words).args(["--memory", "256MiB", "--json", "--out"]).arg(out);
    command.spawn().unwrap()
}

fn study(out: &Path, words: &[&str]) -> Finished {
    finish(start(out, words))
}

fn statuses(record: &serde_json::Value) -> Vec<&str> {
    record["members"].as_array().unwrap().iter().map(|member| member["status"].as_str().unwrap()).collect()
}

/// Nothing but the run's own files is left.
fn assert_clean(out: &Path) {
    let names: Vec<String> = fs::read_dir(out)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("img") || name.contains("qcow2"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn one_vm_and_two_are_measured_and_one_page_shows_who_gets_what() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = [
        "neighbours",
        "--workload",
        MEMORY,
        "--vms",
        "1,2",
        "--vcpus",
        "1",
        "--repetitions",
        "1",
        "--pin",
        "auto",
    ];
    let done = study(&out, &words);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["sets_measured"], &json["members_without_figures"]), (&2.into(), &0.into()), "{json}");
    assert_clean(&out);
    for record in records(&out) {
        let members = record["members"].as_array().unwrap();
        assert_eq!(members.len().to_string(), record["set"].as_str().unwrap());
        for member in members {
            let workload = &member["outcome"]["workload"];
            assert!(workload["metrics"][0]["mean"].as_f64().unwrap() > 0.0, "{member}");
            assert!(!workload["intervals"].as_array().unwrap().is_empty(), "{member}");
            assert!(member["clock"].is_object(), "each guest's clock is held against the host's");
        }
        let measured = record["processes"].as_array().unwrap().iter();
        let guests = measured.filter(|process| process["role"] == "measured_guest").count();
        assert_eq!(guests, members.len(), "each QEMU's use is told apart");
    }
    let html = folder.path().join("again.html");
    let again = run(&["report", out.to_str().unwrap(), "--html", html.to_str().unwrap()]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read(&html).unwrap(), fs::read(out.join("report.html")).unwrap());
    // A finished run has nothing to resume; one of other sets is another run.
    let resumed = study(&out, &[&words[..], &["--resume"]].concat());
    assert_eq!((resumed.code(), records(&out).len()), (0, 2), "{resumed:?}");
    let mut other = words;
    other[4] = "1,3";
    let refused = study(&out, &[&other[..], &["--resume"]].concat());
    assert_eq!(refused.code(), 7, "{refused:?}");
    assert!(refused.stderr.contains("was started with --vms"), "{}", refused.stderr);
}

#[test]
fn a_vm_killed_in_the_middle_leaves_the_other_its_results_and_marks_the_run() {
    let folder = folder();
    let out = folder.path().join("run");
    let workload = "memory:kernel=50ms,time=7s,array=1MiB,stores=regular";
    let child = start(
        &out,
        &[
            "neighbours",
            "--accelerator",
            "tcg",
            "--workload",
            workload,
            "--vms",
            "2",
            "--vcpus",
            "1",
            "--repetitions",
            "1",
        ],
    );
    let guests = wait_for("both guests", || Some(guests_of(&child)).filter(|guests| guests.len() == 2));
    // The run knows its guest once both have greeted; then the workload runs for long enough.
    wait_for("the guests to boot", || {
        let text = fs::read_to_string(out.join("run.json")).ok()?;
        text.contains("\"boot_ns\"").then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal_pid(guests[1], "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 5, "{done:?}");
    assert!(done.stderr.contains("the others went on"), "{}", done.stderr);
    let all = records(&out);
    let mut found = statuses(&all[0]);
    found.sort_unstable();
    assert_eq!((all.len(), found), (1, vec!["failed", "measured"]));
    let json = done.json();
    assert!(json["cautions"].to_string().contains("failed in 2"), "{json}");
    assert!(guests.iter().all(|pid| !is_alive(*pid)));
    assert_clean(&out);
}

/// The QEMU processes that a command has started.
fn guests_of(child: &Child) -> Vec<u32> {
    let all = children(child.id()).into_iter();
    all.filter(|(_, name)| name.starts_with("qemu")).map(|(pid, _)| pid).collect()
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_no_guest_and_goes_on_where_it_was() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = ["neighbours", "--workload", MEMORY, "--vms", "1,2", "--vcpus", "1", "--repetitions", "40"];
    let resumed = [&words[..], &["--resume"]].concat();
    let child = start(&out, &words);
    wait_for("a measurement", || (!records(&out).is_empty()).then_some(()));
    // A second run into the same folder is refused while the first goes on.
    let second = study(&out, &resumed);
    assert_eq!(second.code(), 7, "{second:?}");
    let guests = guests_of(&child);
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    assert!(stopped.stderr.contains("80 measurements of 2 VMs, about "), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("--resume"), "{}", stopped.stderr);
    assert!(!guests.is_empty() && guests.iter().all(|pid| !is_alive(*pid)));
    assert_clean(&out);
    let before = records(&out).len();

    let mut child = start(&out, &resumed);
    wait_for("another measurement", || (records(&out).len() > before).then_some(()));
    let guests = guests_of(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the guests to be gone", || guests.iter().all(|pid| !is_alive(*pid)).then_some(()));
    let all = records(&out);
    let steps: BTreeSet<String> =
        all.iter().map(|record| format!("{} {}", record["set"], record["repetition"])).collect();
    assert!(all.len() > before && steps.len() == all.len(), "a set was measured twice");
    let report = run(&["report", out.to_str().unwrap()]);
    assert_eq!(report.code(), 0, "{report:?}");
}

#[test]
fn a_load_at_shares_of_its_saturation_deviates_by_some_percent() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = [
        "deviation",
        "--workload",
        "load:size=4k,read=70,outstanding=4",
        "--pattern",
        "10,30",
        "--time",
        "3s",
        "--ramp",
        "200ms",
        "--size",
        "32MiB",
        "--repetitions",
        "1",
    ];
    let done = study(&out, &words);
    assert_eq!(done.code(), 0, "{done:?}");
    let all = records(&out);
    let sets: Vec<&str> = all.iter().map(|record| record["set"].as_str().unwrap()).collect();
    assert_eq!((sets.len(), sets[0]), (4, "saturation"));
    let rate_of = |set: &str, position: usize| {
        let record = all.iter().find(|record| record["set"] == set).unwrap();
        record["members"][position]["outcome"]["load"]["spec"]["rate"]["per_second"].as_f64()
    };
    let record = &all[0]["members"][0]["outcome"]["load"]["total"]["iops"];
    let most = record.as_f64().unwrap();
    assert_eq!(rate_of("saturation", 0), None);
    for (set, position, share) in
        [("vm1-alone", 0, 0.1), ("together", 0, 0.1), ("vm2-alone", 0, 0.3), ("together", 1, 0.3)]
    {
        let rate = rate_of(set, position).unwrap();
        assert!((rate / (share * most) - 1.0).abs() < 1e-9, "{set} {position}: {rate} of {most}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("VMs alone and beside others"));
    assert_clean(&out);
}

#[test]
fn workloads_on_files_have_a_file_system_each_and_a_full_one_is_said() {
    let folder = folder();
    let out = folder.path().join("run");
    let words = [
        "neighbours",
        "--workload",
        "iozone:size=64MiB,bs=64k,tests=write,runs=1",
        "--vms",
        "2",
        "--vcpus",
        "1",
    ];
    let done = study(&out, &[&words[..], &["--repetitions", "1", "--size", "32MiB"]].concat());
    assert_eq!(done.code(), 5, "{done:?}");
    let text = fs::read_to_string(out.join("results.jsonl")).unwrap().to_lowercase();
    assert!(text.contains("no room for 64 mib"), "{text}");
    assert_eq!(records(&out).len(), 1, "the run goes on to its end");
    assert_clean(&out);
}

#[test]
fn what_is_impossible_is_said_before_anything_starts() {
    let folder = folder();
    let out = folder.path().join("run");
    let memory = ["neighbours", "--workload", "memory", "--vms", "60"];
    let mut command = virtbench();
    command.arg("study").args(memory).args(["--memory", "64GiB", "--out"]).arg(&out);
    let too_many = finish(command.spawn().unwrap());
    assert_eq!(too_many.code(), 4, "{too_many:?}");
    assert!(
        too_many.stderr.contains("60 VMs of 64 GiB") && too_many.stderr.contains("--memory"),
        "{too_many:?}"
    );
    for (words, word) in [
        (&["deviation", "--workload", "memory"][..], "share of its saturation"),
        (&["deviation", "--workload", "load", "--workload", "cpu"], "--matrix"),
        (&["deviation", "--matrix", "--workload", "cpu"], "1 workloads make no matrix"),
        (
            &["deviation", "--matrix", "--workload", "load", "--workload", "mailserver"],
            "writes over the disk",
        ),
        (&["deviation", "--workload", "load", "--pattern", "8,nine"], "8,nine"),
        (&["neighbours", "--workload", "tape"], "tape"),
        (&["neighbours", "--workload", "memory", "--backing", "tape"], "tape"),
    ] {
        let done = study(&out, words);
        assert_eq!(done.code(), 2, "{words:?}: {done:?}");
        assert!(done.stderr.contains(word), "{words:?}: {}", done.stderr);
    }
    assert!(!out.exists(), "nothing was made");
}
