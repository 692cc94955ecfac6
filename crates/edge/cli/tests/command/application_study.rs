//! `virtbench study application` for real: Redis natively and in a guest, under clients that do well and under others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;

use crate::support::run_folder::{loops_in, records, run_json, scratch};
use crate::support::{Finished, build_appliances, finish, folder, is_alive, virtbench, wait_for};
use serde_json::Value;

const SAMPLE: &str = include_str!("../../../../../docs/applications/redis.toml");

/// A study of Redis natively under a shell's script, whose metric is a number after `rate`.
fn scripted(script: &str, more: &str) -> String {
    format!(
        "appliance = 'redis'\nsides = ['native']\nrepetitions = 1\n{more}\nclient = ['sh', '-c', '''{script}''']\n\
         [[metric]]\nname = 'rate'\npattern = 'rate ([0-9.]+)'\nunit = '1/s'\nbetter = 'higher'\n"
    )
}

fn begin(folder: &Path, name: &str, text: &str, more: &[&str]) -> (PathBuf, Child) {
    build_appliances(&["redis"]);
    let (file, out) = (folder.join(format!("{name}.toml")), folder.join(name));
    fs::write(&file, text).unwrap();
    let mut command = virtbench();
    command.args(["study", "application"]).arg(&file).arg("--out").arg(&out).args(more);
    (out, command.spawn().unwrap())
}

fn study(folder: &Path, name: &str, text: &str, more: &[&str]) -> (PathBuf, Finished) {
    let (out, child) = begin(folder, name, text, more);
    (out, finish(child))
}

#[test]
fn redis_is_measured_natively_and_in_a_guest_alone_and_beside_a_neighbour() {
    let temp = folder();
    let text = SAMPLE.replace("\"20000\"", "\"2000\"");
    let options = ["--repetitions", "1", "--accelerator", "uml", "--json"];
    let (out, finished) = study(temp.path(), "run", &text, &options);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let number = |path: &str| {
        summary.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {summary}"))
    };
    let alone = |side: u32| number(&format!("/sides/{side}/metrics/SET/alone/value"));
    let ratio = number("/sides/1/metrics/SET/ratio/value");
    // Which side a busy host favours is chance, in the median way as well; the shortest way to a guest is longer on any.
    let trip = |side: u32| number(&format!("/sides/{side}/path/round_trip_min_ns"));
    assert!(ratio > 0.0 && trip(1) > trip(0), "{summary}");
    assert!((ratio - alone(1) / alone(0)).abs() < 1e-3 * ratio, "{summary}");
    for side in [0, 1] {
        assert!(number(&format!("/sides/{side}/metrics/GET/beside/value")) > 0.0);
        assert!(number(&format!("/sides/{side}/metrics/GET/deviation_percent/value")) >= 0.0);
        assert!(number(&format!("/sides/{side}/path/round_trip_median_ns")) > 0.0);
    }
    let run = run_json(&out);
    assert!(run["appliances"][0]["packages"]["redis-server"].is_string(), "{run}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("median round trip")
            && page.contains("redis-server")
            && !page.contains("No guest has booted.")
    );
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert_eq!(results.lines().count(), 4, "two sides, alone and beside a neighbour");
    let mut again = virtbench();
    let again = finish(again.args(["study", "application", "--resume", "--out"]).arg(&out).spawn().unwrap());
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read_to_string(out.join("results.jsonl")).unwrap(), results, "nothing was missing");
    assert_eq!((loops_in(temp.path()), scratch(&out)), (Vec::<String>::new(), Vec::new()));
}

#[test]
fn clients_and_services_that_fail_are_named_with_what_was_printed() {
    let temp = folder();
    let cases = [
        ("silent", "echo speed 7", "", "nothing in its output matches", "speed 7"),
        ("fails", "echo no luck; exit 3", "", "ended with exit code 3", "no luck"),
        ("endless", "echo begun; sleep 600", "limit = '1s'", "was not done after 1 s", "begun"),
        (
            "dies",
            "echo going; redis-cli -h {host} -p {port} shutdown nosave; sleep 600",
            "",
            "redis: redis: ",
            "going",
        ),
    ];
    thread::scope(|scope| {
        for (name, script, more, said, printed) in cases {
            let folder = temp.path();
            scope.spawn(move || {
                let (out, finished) = study(folder, name, &scripted(script, more), &[]);
                assert_eq!(finished.code(), 5, "{name}: {finished:?}");
                let said = if name == "dies" { "redis" } else { said };
                assert!(finished.stderr.contains(said), "{name}: {finished:?}");
                let all = records(&out);
                assert_eq!(all.len(), 1, "{name}: {all:?}");
                let line = &all[0];
                assert!(
                    line["output"].as_str().is_some_and(|output| output.contains(printed)),
                    "{name}: {line}"
                );
                let page = fs::read_to_string(out.join("report.html")).unwrap();
                assert!(page.contains(printed), "{name}");
                assert_eq!(scratch(&out), Vec::<String>::new());
            });
        }
    });
    assert_eq!(loops_in(temp.path()), Vec::<String>::new());
}

#[test]
fn a_study_of_an_application_that_cannot_be_is_refused_before_anything_is_measured() {
    let temp = folder();
    let well = scripted("echo rate 1", "");
    for (text, more, code, said) in [
        (scripted("x", "speed = 1"), &[][..], 2, "unknown field `speed`"),
        (well.replace("'redis'", "'weather'"), &[], 2, "there is no recipe weather"),
        (well.replace("'sh', '-c'", "'no-such-client'"), &[], 4, "no-such-client is not here: install it"),
        (well.clone(), &["--disk", "tape"], 2, "file, or fence"),
        (well.clone(), &["--vcpus", "1000"], 2, "a side of 1000 processors"),
        (well.clone(), &["--kernel", "/nowhere"], 0, ""),
    ] {
        let (out, finished) = study(temp.path(), "run", &text, more);
        assert_eq!(finished.code(), code, "{finished:?}");
        assert!(finished.stderr.contains(said), "{finished:?}");
        assert_eq!(out.exists(), code == 0, "{said}");
    }
}

#[test]
fn a_killed_study_of_an_application_leaves_no_process_and_is_resumed() {
    let temp = folder();
    let place = temp.path().join("client");
    let text = scripted(
        &format!("echo $$ > {0}; while [ -e {0} ]; do sleep 0.1; done; echo rate 7", place.display()),
        "",
    );
    let (out, mut child) = begin(temp.path(), "run", &text, &[]);
    let pid = wait_for("the client", || fs::read_to_string(&place).ok()?.trim().parse().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the client and the appliance to be gone", || {
        (!is_alive(pid) && loops_in(temp.path()).is_empty()).then_some(())
    });
    let mut again = virtbench();
    let again =
        again.args(["study", "application", "--resume", "--json", "--out"]).arg(&out).spawn().unwrap();
    wait_for("the client", || {
        fs::read_to_string(&place).ok()?.trim().parse().ok().filter(|now: &u32| *now != pid)
    });
    fs::remove_file(&place).unwrap();
    let again = finish(again);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(again.json()["sides"][0]["metrics"]["rate"]["alone"]["value"], 7.0, "{again:?}");
    assert_eq!(scratch(&out), Vec::<String>::new(), "what the kill left went with the run that followed");
}

#[test]
fn data_can_lie_on_a_disk_of_the_fence_on_both_sides() {
    let temp = folder();
    let script = "redis-benchmark -h {host} -p {port} -t set -n 200 -c 2 --csv >/dev/null && echo rate 1";
    let text = scripted(script, "").replace("sides = ['native']", "");
    let options = ["--disk", "fence,scheduler=pass-through", "--accelerator", "uml"];
    let (out, finished) = study(temp.path(), "run", &text, &options);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert_eq!(results.matches("\"status\":\"measured\"").count(), 2, "{results}");
    assert_eq!((loops_in(temp.path()), scratch(&out)), (Vec::<String>::new(), Vec::new()));
}

#[test]
fn the_storage_that_an_application_is_measured_on_is_recorded() {
    let temp = folder();
    // Another file system than that of the run folder, wherever the tests keep theirs.
    let memory = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let storage = memory.path().display().to_string();
    let (out, finished) =
        study(temp.path(), "run", &scripted("echo rate 1", ""), &["--target-dir", storage.as_str()]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let run = run_json(&out);
    assert_eq!(run["host"]["disk"]["filesystem"], "tmpfs", "{run}");
}
