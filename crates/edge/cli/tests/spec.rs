//! `virtbench load --spec` and `--export` as a user runs them.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{folder, run};

const JOBS: &str = "[global]\nioengine=io_uring\ntime_based\nruntime=60\nrw=randread\n[a]\niodepth=8\n[b]\nstonewall\niodepth=2\n";
const SHORT: [&str; 8] = ["--target", "null", "--size", "8MiB", "--ramp", "10ms", "--time", "60ms"];

#[test]
fn jobs_of_a_file_are_run_one_after_another_each_as_often_as_asked() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("jobs.fio"), JOBS).unwrap();
    let (spec, export) = (path("jobs.fio"), format!("fio-json={}", path("out.json")));
    let mut words = vec!["load", "--spec", &spec, "--repeat", "3", "--json", "--export", &export];
    words.extend(SHORT);
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs.iter().map(|job| job["job"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((&jobs[0]["spec"]["outstanding"], &jobs[1]["spec"]["outstanding"]), (&8.into(), &2.into()));
    for job in jobs {
        assert_eq!(job["elapsed_ns"], 60_000_000, "--time replaces the file's");
        assert_eq!(job["repetitions"].as_array().unwrap().len(), 3);
        assert!(job["total"]["histogram"].is_null());
    }
    let exported: serde_json::Value = serde_json::from_slice(&fs::read(path("out.json")).unwrap()).unwrap();
    assert_eq!(exported["jobs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_job_that_makes_no_sense_is_refused_before_the_first_is_run() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("jobs.fio"), JOBS).unwrap();
    let (spec, target) = (path("jobs.fio"), path("t.img"));
    let done = run(&["load", "--spec", &spec, "--target", &target, "--size", "8MiB", "--engine", "psync"]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stderr.contains("job \"a\"") && done.stderr.contains("psync"), "{}", done.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a target was made");
}

#[test]
fn what_has_no_meaning_together_is_refused() {
    for (words, word) in [
        (vec!["load", "--verify-only", "--seed", "1", "--spec", "x"], "--spec"),
        (vec!["saturate", "--target", "null", "--spec", "x"], "--spec"),
        (vec!["saturate", "--target", "null", "--rate", "5/s"], "--rate"),
        (vec!["saturate", "--target", "null", "--verify-only", "--seed", "1"], "--verify-only"),
    ] {
        let done = run(&words);
        assert_eq!(done.code(), 2, "{words:?}: {done:?}");
        assert!(done.stderr.contains(word), "{words:?}: {}", done.stderr);
    }
}
