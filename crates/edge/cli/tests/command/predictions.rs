//! `virtbench study predictions`, `costs` and what `predict` refuses, as a user runs them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run_folder::run_json;
use crate::support::{finish, folder, long_figures, run, signal, virtbench, wait_for};
use serde_json::{Value, json};

/// Costs of this host without references, so that none has to be run.
fn costs(folder: &Path, wait_ns: [f64; 2]) -> PathBuf {
    let cost = |part: &str, [reference_ns, subject_ns]: [f64; 2]| json!({"name": format!("piece of {part}"), "part": part, "reference_ns": reference_ns, "subject_ns": subject_ns});
    let costs = json!({
        "costs_format": 4,
        "host": {"kernel": "", "distribution": "", "cpu": "", "processors": 2, "memory_bytes": 1, "hypervisor": null,
            "disk": {"filesystem": "ext4", "device": null, "rotational": null, "scheduler": null, "write_cache": null}},
        "adapter": "virtio-blk",
        "accelerator": "uml",
        "vcpus": 1,
        "costs": [cost("user", [100.0, 1000.0]), cost("system", [100.0, 1000.0]), cost("copy", [0.1, 0.3]),
            cost("wait", wait_ns)],
    });
    let path = folder.join("costs of mine.json");
    fs::write(&path, costs.to_string()).unwrap();
    path
}

/// Two applications: a command that begins with files and waits for the disk, and a workload of virtbench's own.
const CASES: &str = "
set = 'held-out'
[[case]]
name = 'dd'
command = ['dd', 'if=begin here/it is', 'of=copy', 'bs=4k', 'count=1500', 'oflag=dsync']
metric = 'elapsed'
workers = 1
prepare = '''
mkdir 'begin here'
head -c 6144000 /dev/zero > 'begin here/it is'
'''
[[case]]
name = 'webserver'
command = ['virtbench', 'workload', 'webserver:threads=2,files=100,run=1s,runs=1', '--dir', '.']
workers = 2
";

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What a finished run of predictions leaves in its folder.
const LEFT: [&str; 11] = [
    "costs-1.json",
    "costs.json",
    "histograms.hlog",
    "prepared",
    "profiles",
    "report.html",
    "results.csv",
    "results.jsonl",
    "results.md",
    "run.json",
    "virtbench.log",
];

/// The folder of a finished run holds what it should, and is reported again.
fn assert_left(out: &Path) {
    assert_eq!(names(out), LEFT, "no disk of a VM, nothing half-made");
    assert_eq!(names(&out.join("prepared")), ["dd", "webserver"]);
    let provenance = run_json(out);
    assert_eq!(provenance["guest"]["accelerator"]["name"], "uml");

    // Written and printed again.
    fs::remove_file(out.join("report.html")).unwrap();
    let report = run(&["report", out.to_str().unwrap()]);
    assert!(report.code() == 0 && report.stdout.contains("report.html"), "{report:?}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("held-out set") && page.contains("webserver"));
}

#[test]
fn predictions_go_on_after_a_kill_with_the_folder_alone() {
    let folder = folder();
    let out = folder.path().join("it's a \"run\" of $HOME;");
    let cases = folder.path().join("cases.toml");
    fs::write(&cases, CASES).unwrap();
    let costs = costs(folder.path(), [1e5, 3e5]);
    let out_words = ["--out", out.to_str().unwrap()];
    let study = |more: &[&str]| {
        let mut command = virtbench();
        command.args(["study", "predictions"]).args(out_words).args(more);
        command.spawn().unwrap()
    };
    let all = [
        "--cases",
        cases.to_str().unwrap(),
        "--costs",
        costs.to_str().unwrap(),
        "--trials",
        "1",
        "--runs",
        "1",
        "--size",
        "256MiB",
        "--memory",
        "512MiB",
        "--accelerator",
        "uml",
        "--vcpus",
        "1",
    ];
    let mut child = study(&all);
    // The first application is on its way through the VM.
    wait_for("profiles", || out.join("profiles/webserver-1.json").exists().then_some(()));
    for more in [&all[..], &["--resume"]] {
        let second = finish(study(more));
        assert!(second.code() == 7 && second.stderr.contains("in use"), "{second:?}");
    }
    child.kill().unwrap();
    finish(child);
    let again = finish(study(&all));
    assert!(again.code() == 7 && again.stderr.contains("--resume"), "{again:?}");
    // The files that it was begun with are not needed any more.
    fs::remove_file(&cases).unwrap();
    fs::remove_file(&costs).unwrap();
    let profile = fs::read(out.join("profiles/dd-1.json")).unwrap();
    let resumed = finish(study(&["--resume", "--json", "--progress", "lines"]));
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert_eq!(fs::read(out.join("profiles/dd-1.json")).unwrap(), profile, "profiled once");
    assert_eq!(long_figures(&resumed.stdout), Vec::<String>::new());
    let found = resumed.json();
    let tried: Vec<&str> =
        found["trials"].as_array().unwrap().iter().map(|trial| trial["case"].as_str().unwrap()).collect();
    for trial in found["trials"].as_array().unwrap() {
        for side in ["reference_host", "machine_host"] {
            let used = trial[side]["others_percent"].as_f64();
            assert!(used.is_some_and(|used| used >= 0.0), "what other programs used beside {side}: {trial}");
        }
    }
    assert_eq!((tried, &found["set"]), (vec!["dd", "webserver"], &json!("held-out")));
    assert!(found["headline"].as_str().unwrap().contains("2 applications of the held-out set"), "{found}");
    assert!(found["mean_absolute_error_percent"].as_f64().unwrap() > 0.0);
    assert!(resumed.stderr.contains("% left") || resumed.stderr.contains(" %"), "{}", resumed.stderr);
    assert_left(&out);
    let before = fs::read(out.join("results.jsonl")).unwrap();
    let predicted = finish(study(&["--again", "--json"])).json();
    assert_eq!(predicted["trials"], found["trials"]);
    assert_eq!(finish(study(&["--resume"])).code(), 0);
    assert_eq!(fs::read(out.join("results.jsonl")).unwrap(), before, "nothing is tried twice");
}

/// An application that writes so often past the page cache, on the first of some storages of small guests, predicted and tried once on the others.
fn on_storages(folder: &Path, writes: u32, storages: &[&str]) -> (PathBuf, Value) {
    let (out, cases) = (folder.join("out"), folder.join("cases.toml"));
    let case = format!(
        "[[case]]\nname = 'dd'\nmetric = 'elapsed'\nworkers = 1\n\
         command = ['dd', 'if=/dev/zero', 'of=synced', 'bs=4k', 'count={writes}', 'oflag=direct']\n"
    );
    fs::write(&cases, case).unwrap();
    let mut words =
        vec!["study", "predictions", "--cases", cases.to_str().unwrap(), "--out", out.to_str().unwrap()];
    words.extend(["--trials", "1", "--runs", "1", "--size", "64MiB", "--memory", "256MiB", "--json"]);
    words.extend(["--accelerator", "uml", "--vcpus", "1"]);
    storages.iter().for_each(|storage| words.extend(["--storage", storage]));
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    nothing_else_is_in(&out);
    (out, done.json())
}

/// A run of storages has its own files alone: no disk of a VM, none of the fence, nothing half-made.
fn nothing_else_is_in(out: &Path) {
    let mut left = LEFT.map(|name| name.replace("costs", "storages"));
    left.sort_unstable();
    assert_eq!(names(out), left);
}

#[test]
fn an_application_is_predicted_for_storages_and_the_slow_ones_are_told_apart() {
    let folder = folder();
    let storages = ["virtio-blk", "virtio-blk,iops=500", "virtio-blk,delay=5ms"];
    let (out, found) = on_storages(folder.path(), 400, &storages);
    let trials = found["trials"].as_array().unwrap();
    let on: Vec<&str> = trials.iter().map(|trial| trial["storage"].as_str().unwrap()).collect();
    assert_eq!(on, storages[1..]);
    for trial in trials {
        let [reference, predicted, truth] =
            ["reference", "predicted", "truth"].map(|name| trial[name].as_f64().unwrap());
        // 400 writes took some ten milliseconds, and take 0.8 and 2 seconds.
        assert!(truth < reference / 2.0 && predicted < reference / 1.5, "{trial}");
        // At 500 a second there are 4,500 runs an hour at most, and fewer where other programs keep the VM from its processor.
        let is_limited = trial["storage"] == "virtio-blk,iops=500";
        assert!(!is_limited || (predicted / 4500.0 - 1.0).abs() < 0.3 && truth < 1.3 * 4500.0, "{trial}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("dd on virtio-blk,delay=5ms") && page.contains("the better one was named"),
        "{page}"
    );
    let again = run(&["study", "predictions", "--again", "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(again.json()["trials"], found["trials"]);
    nothing_else_is_in(&out);
}

#[test]
fn a_disk_of_the_fence_is_a_storage_and_its_slots_are_waited_for() {
    let folder = folder();
    let storages = ["virtio-blk", "vhost-user-blk@fence,scheduler=HDD+NWC,slow=file,slot=30ms"];
    let (_, found) = on_storages(folder.path(), 2000, &storages);
    let trial = &found["trials"][0];
    let [reference, truth] = ["reference", "truth"].map(|name| trial[name].as_f64().unwrap());
    // Half of the time is the other disk's, and 2,000 writes one by one take longer than a slot.
    assert!(truth < 0.8 * reference && trial["in_turn"].as_f64().unwrap() > 0.0, "{trial}");
}

#[test]
fn storages_that_cannot_be_compared_are_refused_by_name() {
    let folder = folder();
    let cases = folder.path().join("cases.toml");
    fs::write(&cases, CASES).unwrap();
    let out = folder.path().join("out");
    let study = |storages: &[&str]| {
        let mut words =
            vec!["study", "predictions", "--cases", cases.to_str().unwrap(), "--out", out.to_str().unwrap()];
        storages.iter().for_each(|storage| words.extend(["--storage", storage]));
        run(&words)
    };
    for (storages, said) in [
        (&["virtio-blk"][..], "1 storages: name the one that applications run on"),
        (&["virtio-blk", "virtio-blk"], "virtio-blk is there twice"),
        (&["virtio-blk", "tape"], "tape"),
        (&["virtio-blk", "virtio-blk,delay=1us"], "whole milliseconds"),
        (&["virtio-blk", "virtio-blk@qcow2"], "of backings only fence can follow @ here"),
        (&["virtio-blk", "vhost-user-blk,iops=5@fence"], "leave them out before @fence"),
    ] {
        let done = study(storages);
        assert!(done.code() == 2 && done.stderr.contains(said), "{storages:?}: {done:?}");
    }
    assert!(!out.exists());
}

#[test]
fn folders_and_files_that_cannot_be_a_run_of_predictions_are_refused() {
    let folder = folder();
    let cases = folder.path().join("cases.toml");
    fs::write(&cases, "[[case]]\nname = 'a'\ncommand = ['true']\nworkers = 1\n").unwrap();
    let cases_name = cases.display().to_string();
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "x").unwrap();
    let foreign = foreign.display().to_string();
    let none = folder.path().join("none").display().to_string();
    let expect = |more: &[&str], code: i32, said: &str| {
        let finished = run(&[&["study", "predictions"], more].concat());
        assert!(finished.code() == code && finished.stderr.contains(said), "{more:?}: {finished:?}");
    };
    expect(&["--cases", &cases_name, "--out", &none], 2, "case a: metric");
    fs::write(&cases, CASES).unwrap();
    expect(&["--cases", &cases_name, "--out", &foreign], 7, "not empty and holds no run");
    expect(&["--resume", "--out", &none], 7, "holds no run");
    expect(&["--resume", "--out", &foreign], 7, "holds no run");
    expect(&["--again", "--out", &foreign], 7, "holds no run");
    expect(&["--cases", &cases_name, "--only", "xz", "--out", &none], 2, "there is no case xz: there are dd");
    expect(&["--cases", &none, "--out", &none], 2, "none: ");
    expect(&["--cases", &cases_name, "--adapter", "buslogic", "--out", &none], 2, "buslogic");
    assert!(!Path::new(&none).exists(), "what is refused leaves nothing");
}

#[test]
fn costs_that_are_terminated_half_way_exit_130_without_a_file() {
    for name in ["TERM", "INT"] {
        let folder = folder();
        let costs = folder.path().join("costs.json");
        let mut command = virtbench();
        command
            .args(["costs", "--size", "64MiB", "--target-dir"])
            .arg(folder.path())
            .arg("--out")
            .arg(&costs);
        let child = command.spawn().unwrap();
        // The native side's place is made when pieces are about to be measured.
        wait_for("the native side", || {
            let made = |name: &String| name.starts_with("virtbench-native-") && !name.ends_with(".img");
            names(folder.path()).iter().any(made).then_some(())
        });
        signal(&child, name);
        let ended = finish(child);
        assert_eq!(ended.code(), 130, "{ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.contains("stopped"), "{ended:?}");
        assert_eq!(names(folder.path()), Vec::<String>::new(), "nothing is left");
    }
}

#[test]
fn an_impossible_factor_is_refused_with_its_source() {
    let folder = folder();
    // A flush of 4.96 ms natively, and 110 times shorter in the VM.
    let costs = costs(folder.path(), [4_960_000.0, 45_090.0]);
    let profile = folder.path().join("app.toml");
    fs::write(&profile, "name = 'app'\nio_per_second = 500\n").unwrap();
    let words = ["predict", "--profile", profile.to_str().unwrap(), "--costs", costs.to_str().unwrap()];
    let refused = run(&words);
    assert_eq!(refused.code(), 2, "{refused:?}");
    let said = &refused.stderr;
    assert!(
        said.contains("costs of mine.json: piece of wait") && said.contains("110 times shorter"),
        "{said}"
    );
}

#[test]
fn a_disk_that_would_be_copied_into_itself_is_refused() {
    let folder = folder();
    let toml = folder.path().join("app.toml");
    fs::write(&toml, "name = 'app'\nio_per_second = 500\ncpu_user_percent = 50\ncpu_system_percent = 20\n")
        .unwrap();
    let mut profile = run(&["profile", "--from", toml.to_str().unwrap(), "--json"]).json();
    profile["command"] = json!(["dd", "if=/dev/zero", "of=x"]);
    profile["metric"] = json!("elapsed");
    let path = folder.path().join("app.json");
    fs::write(&path, profile.to_string()).unwrap();
    let costs = costs(folder.path(), [1e5, 3e5]);
    let mut command = virtbench();
    command.current_dir(folder.path()).args([
        "predict",
        "--verify",
        "--disk-from",
        ".",
        "--profile",
        "app.json",
    ]);
    command.arg("--costs").arg(&costs).arg("--allow-other");
    let before = names(folder.path());
    let refused = finish(command.spawn().unwrap());
    assert!(refused.code() == 2 && refused.stderr.contains("copied into itself"), "{refused:?}");
    assert_eq!(names(folder.path()), before);
}
