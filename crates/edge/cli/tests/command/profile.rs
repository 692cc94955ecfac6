//! `virtbench profile` on applications whose I/O is known: virtbench's own loads.

use std::path::Path;

use crate::support::{Finished, children, finish, folder, is_alive, run, signal, virtbench, wait_for};
use serde_json::Value;

const VIRTBENCH: &str = env!("CARGO_BIN_EXE_virtbench");

/// A load's options, without its target.
const LOAD: [&str; 12] =
    ["--size", "16MiB", "--bs", "8k", "--read", "70", "--rate", "300/s", "--time", "3s", "--seed", "7"];

fn prepared(folder: &Path) -> String {
    let target = folder.join("t.img").display().to_string();
    assert_eq!(
        run(&["load", "--target", &target, "--size", "16MiB", "--ramp", "0s", "--time", "100ms"]).code(),
        0
    );
    target
}

fn profiled(options: &[&str], target: &str, load: &[&str]) -> Finished {
    let mut arguments = vec!["profile"];
    arguments.extend(options);
    arguments.extend(["--", VIRTBENCH, "load", "--target", target]);
    arguments.extend(load);
    run(&arguments)
}

fn value(profile: &Value, figure: &str) -> f64 {
    profile[figure]["value"].as_f64().unwrap_or_else(|| panic!("{figure}: {}", profile[figure]))
}

/// Events that came too fast to be read, by the profile's own note; those of other programs are among them.
fn lost(profile: &Value) -> f64 {
    let notes = profile["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    notes
        .filter_map(|note| note.split_once(" events of the block layer came too fast")?.0.parse::<f64>().ok())
        .sum()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_load_s_rate_sizes_reads_and_order_are_seen_from_outside() {
    let folder = folder();
    let target = prepared(folder.path());
    let out = folder.path().join("p.json").display().to_string();
    // From its first operation to its last, so that its own count can be held against what was seen.
    let load = [&LOAD[..], &["--ramp", "0s", "--json"]].concat();
    let finished = profiled(&["--json", "--out", &out], &target, &load);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let profile = finished.json();
    assert!(is_root(), "this test needs the block layer's events: run it as root");
    let own = finished.stderr.lines().find(|line| line.starts_with('{')).unwrap();
    let own: Value = serde_json::from_str(own).unwrap();
    let [operations, reads] = ["total", "read"].map(|side| own[side]["operations"].as_f64().unwrap());
    let (rate, lost) = (value(&profile, "io_per_second"), lost(&profile));
    let seen = rate * profile["elapsed_ns"].as_f64().unwrap() / 1e9;
    let sizes = profile["sizes"]["value"].as_array().unwrap();
    let share = |size: &Value| size["share_percent"].as_f64().unwrap() / 100.0;
    let own_size = sizes.iter().find(|size| size["size_bytes"] == 8192.0).unwrap();
    // Those in flight at the end were seen and not counted; under pressure the program's own pages are read too.
    let of_size = (seen * share(own_size)).round();
    assert!(
        (operations - lost..operations * 1.1 + 17.0).contains(&of_size),
        "{of_size} and {operations}: {profile}"
    );
    assert!(sizes.iter().all(|size| share(size) <= share(own_size)), "{profile}");
    assert_eq!(profile["io_per_second"]["source"], "tracefs");
    let seen_reads = value(&profile, "reads_per_second") / rate * seen;
    let beside = seen + lost - operations + 1.0;
    assert!(
        (reads - lost - 1.0..reads + beside).contains(&seen_reads),
        "{seen_reads} and {reads}: {profile}"
    );
    let mean_bytes = value(&profile, "bytes_per_second") / rate;
    // Pages of the program itself have 4 KiB, or more when they are read ahead.
    assert!((6500.0..16384.0).contains(&mean_bytes), "{mean_bytes}: {profile}");
    assert!(profile["random"]["value"]["low_percent"].as_f64().unwrap() > 85.0, "{profile}");
    assert!((1..=2).contains(&profile["workers"]["value"].as_u64().unwrap()), "{profile}");
    assert!(
        value(&profile, "cpu_user_percent") >= 0.0 && profile["host"]["processors"].as_u64().unwrap() > 0
    );
    // The load's own table went to stderr; what was written comes back and is the same.
    let again = run(&["profile", "--from", &out, "--json"]);
    assert_eq!(again.json(), profile);
    assert!(run(&["profile", "--from", &out]).stdout.contains("8 KiB"));
}

#[test]
fn sequential_and_asynchronous_loads_are_recognised() {
    let folder = folder();
    let target = prepared(folder.path());
    let load = [
        "--size",
        "16MiB",
        "--bs",
        "16k",
        "--random",
        "0",
        "--outstanding",
        "8",
        "--ramp",
        "0s",
        "--time",
        "2s",
    ];
    let profile = profiled(&["--ramp", "500ms", "--time", "1s", "--json"], &target, &load).json();
    assert!(profile["random"]["value"]["high_percent"].as_f64().unwrap() < 5.0, "{profile}");
    assert!(profile["outstanding_peak_per_worker"]["value"].as_u64().unwrap() > 1, "{profile}");
    assert!(profile["notes"].to_string().contains("had not ended"), "{profile}");
}

#[test]
fn without_events_the_accounts_speak_and_say_what_they_cannot_know() {
    let folder = folder();
    let target = prepared(folder.path());
    let finished = profiled(&["--no-trace", "--ramp", "500ms", "--json"], &target, &LOAD);
    let profile = finished.json();
    assert_eq!(profile["io_per_second"]["source"], "block statistics");
    // Shared out by bytes among everything that uses the disk, which here may be much.
    assert!(value(&profile, "io_per_second") > 30.0, "{profile}");
    assert!(profile["random"]["unavailable"].as_str().unwrap().contains("offsets cannot be seen"));
    assert!(profile["sizes"]["unavailable"].as_str().unwrap().contains("--no-trace"));
}

#[test]
fn an_application_that_forks_and_leaves_is_followed() {
    let folder = folder();
    let file = folder.path().join("w").display().to_string();
    let script =
        format!("(sleep 0.3; dd if=/dev/zero of={file} bs=64k count=300 oflag=direct; sleep 0.3) & exit 3");
    let finished = run(&["profile", "--json", "--", "sh", "-c", &script]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let profile = finished.json();
    let seconds = profile["elapsed_ns"].as_u64().unwrap() as f64 / 1e9;
    let written = value(&profile, "writes_per_second") * seconds;
    assert!((299.0..340.0).contains(&written), "{written}: {profile}");
    assert!(profile["notes"].to_string().contains("exit code 3"));
}

#[test]
fn a_running_process_is_profiled_and_left_running() {
    let folder = folder();
    let target = prepared(folder.path());
    let mut load = virtbench();
    load.args(["load", "--target", &target, "--size", "16MiB", "--rate", "300/s", "--time", "100s"]);
    let load = load.spawn().unwrap();
    let pid = load.id().to_string();
    let profile = wait_for("the load to begin", || {
        let finished = run(&["profile", "--pid", &pid, "--time", "1s", "--json"]);
        (finished.code() == 0)
            .then(|| finished.json())
            .filter(|profile| value(profile, "io_per_second") > 100.0)
    });
    assert!(profile["name"].as_str().unwrap().contains("load"));
    assert!(is_alive(load.id()));
    signal(&load, "INT");
    finish(load);
}

#[test]
fn a_command_is_ended_with_its_time_and_with_virtbench() {
    let folder = folder();
    let target = prepared(folder.path());
    let load = ["--size", "16MiB", "--ramp", "0s", "--time", "100s"];
    let finished = profiled(&["--time", "500ms", "--json"], &target, &load);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let mut profiling = virtbench();
    profiling.args(["profile", "--", VIRTBENCH, "load", "--target", &target]).args(load);
    let mut profiling = profiling.spawn().unwrap();
    let children = wait_for("the load", || Some(children(profiling.id())).filter(|found| !found.is_empty()));
    profiling.kill().unwrap();
    profiling.wait().unwrap();
    wait_for("the load to end", || (!is_alive(children[0].0)).then_some(()));
}

#[test]
fn what_cannot_be_profiled_is_said() {
    let folder = folder();
    let bad = folder.path().join("bad.toml");
    let refused = |text: &str| {
        std::fs::write(&bad, text).unwrap();
        run(&["profile", "--from", &bad.display().to_string()])
    };
    for (text, said) in [
        ("name = 'x'\nio_per_second = 0\n", "0 is no rate"),
        (
            "name = 'x'\nio_per_second = 100\nreads_per_second = 90\nwrites_per_second = 90\n",
            "90 reads and 90 writes",
        ),
        ("name = 'x'\nio_per_second = 100\nrandom_percent = [80, 20]\n", "random"),
        ("name = 'x'\nio_per_second = 100\nwhat = 1\n", "unknown field"),
    ] {
        let finished = refused(text);
        assert!(finished.code() == 2 && finished.stderr.contains(said), "{finished:?}");
    }
    // Its pages are in memory from now on.
    assert!(std::process::Command::new("true").status().unwrap().success());
    for (arguments, code, said) in [
        // On a busy machine even this may live long enough to have done nothing.
        (vec!["profile", "--", "true"], 3, "ended after|moved no data"),
        (vec!["profile", "--", "/nonexistent/program"], 3, "cannot start"),
        (vec!["profile", "--pid", "4194305"], 3, "no such process"),
        (vec!["profile", "--time", "1ms", "--", "sleep", "1"], 2, "--time"),
        (vec!["profile"], 2, "--pid"),
        (vec!["profile", "--ramp", "300ms", "--", "sleep", "1"], 3, "no data"),
        (vec!["profile", "--from", "/nonexistent"], 2, "cannot read"),
    ] {
        let finished = run(&arguments);
        let is_said = said.split('|').any(|said| finished.stderr.contains(said));
        assert!(finished.code() == code && is_said, "{arguments:?}: {finished:?}");
    }
}

#[test]
fn an_application_without_io_is_profiled_by_its_metric_and_only_then() {
    let count = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"];
    // Whatever empties the page cache meanwhile has the shell's own pages read again, which is I/O and seen as such: that run
    // is none without I/O.
    let with = |options: &[&str]| {
        wait_for("a run whose program stays in memory", || {
            let done = run(&[&["profile", "--json"], options, &["--"], &count].concat());
            let read_again = done.code() == 0 && value(&done.json(), "io_per_second") > 0.0;
            (!read_again).then_some(done)
        })
    };
    let profile = with(&["--metric", "elapsed"]);
    assert_eq!(profile.code(), 0, "{profile:?}");
    let json = profile.json();
    assert_eq!((value(&json, "io_per_second"), &json["capacity"]["name"]), (0.0, &"runs/h".into()));
    // Not as a share: that is what other programs leave of the processors.
    let user_s = value(&json, "cpu_user_percent") / 100.0 * json["elapsed_ns"].as_f64().unwrap() / 1e9;
    assert!((0.05..10.0).contains(&user_s), "{user_s}: {json}");
    assert!(json["notes"].to_string().contains("moved no data"), "{json}");
    let refused = with(&[]);
    assert!(refused.code() == 3 && refused.stderr.contains("--metric elapsed"), "{refused:?}");
    let by_io = with(&["--metric", "io"]);
    assert_eq!(by_io.code(), 3, "{by_io:?}");
}
