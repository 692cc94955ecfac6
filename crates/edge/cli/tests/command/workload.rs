//! `virtbench workload` as a user runs it.

use std::fs;
use std::process::Stdio;

use crate::support::{finish, folder, run, signal, virtbench, wait_for};

#[test]
fn memory_throughput_is_one_object_with_a_sample_a_run() {
    let done = run(&["workload", "memory:array=1MiB,kernel=2ms,runs=3,threads=2", "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let metrics = json["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["copy", "scale", "add", "triad"]);
    for metric in metrics {
        assert_eq!((&metric["unit"], &metric["better"]), (&"B/s".into(), &"higher".into()));
        assert!(metric["samples"].as_array().unwrap().len() == 3 && metric["mean"].as_f64().unwrap() > 0.0);
    }
    assert!(json["intervals"].as_array().is_some_and(|intervals| !intervals.is_empty()));
    assert!(json["host_cpu"]["processors"].as_u64().unwrap() > 0);
}

#[test]
fn the_suite_is_scored_and_its_idle_time_told() {
    let done = run(&["workload", "cpu:kernels=aes+sor,kernel=5ms,runs=2,threads=1,ballast=1MiB"]);
    assert_eq!(done.code(), 0, "{done:?}");
    for words in ["score", "aes idle", "operations/min", "ballast of 1 MiB", "2 runs", "host CPU"] {
        assert!(done.stdout.contains(words), "{words} is missing:\n{}", done.stdout);
    }
}

#[test]
fn nonsense_is_exit_code_2_with_the_key() {
    for (text, words) in [
        ("memroy", "memory, cpu"),
        ("cpu:kernels=quicksort", "monte-carlo"),
        ("memory:array=1k", "64 KiB"),
        ("memory:array=2TiB", "make it smaller"),
        ("cpu:ballast=4TiB", "ballast=4 TiB"),
    ] {
        let done = run(&["workload", text]);
        assert_eq!(done.code(), 2, "{text}: {done:?}");
        assert!(done.stderr.contains(words), "{text}: {}", done.stderr);
    }
}

#[test]
fn a_limit_that_is_too_short_is_exit_code_5_with_what_there_is() {
    let done = run(&["workload", "memory:array=1MiB,kernel=10ms,runs=1000,limit=200ms", "--json"]);
    assert_eq!(done.code(), 5, "{done:?}");
    assert!(done.stderr.contains("limit") && done.json()["interrupted"] == true, "{done:?}");
}

#[test]
fn loads_on_files_run_in_a_folder_of_their_own_and_leave_nothing() {
    let place = folder();
    let dir = place.path().to_str().unwrap();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pure/formats/tests/examples");
    for (text, lead, unit) in [
        ("mailserver:threads=2,files=50,run=200ms,runs=1".to_owned(), "operations", "operations/s"),
        (format!("{examples}/small.f:run=300ms,runs=1"), "operations", "operations/s"),
        (format!("dbench:file={examples}/small.load,threads=2,run=300ms,runs=1"), "throughput", "B/s"),
        ("bonnie:size=256KiB,files=16,seeks=20,runs=1".to_owned(), "write-character", "B/s"),
        ("iozone:size=1MiB,bs=64KiB,tests=write+strided-read,runs=1".to_owned(), "write 64 KiB", "B/s"),
    ] {
        let done = run(&["workload", &text, "--dir", dir, "--json"]);
        assert_eq!(done.code(), 0, "{text}: {done:?}");
        let json = done.json();
        let first = &json["metrics"][0];
        assert_eq!((&first["name"], &first["unit"]), (&lead.into(), &unit.into()), "{text}: {json}");
        assert!(first["mean"].as_f64().unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{text}");
    }
}

#[test]
fn a_folder_that_is_not_ours_or_none_at_all_is_exit_code_3() {
    let place = folder();
    let foreign = place.path().join("virtbench-files");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "x").unwrap();
    let done = run(&["workload", "webserver:files=5", "--dir", place.path().to_str().unwrap()]);
    assert_eq!(done.code(), 3, "{done:?}");
    assert!(done.stderr.contains("not made by virtbench") && foreign.join("precious").exists(), "{done:?}");
    let done = run(&["workload", "webserver:files=5"]);
    assert!(done.code() == 3 && done.stderr.contains("--dir"), "{done:?}");
}

#[test]
fn a_model_that_is_not_understood_is_exit_code_2_with_its_line() {
    let place = folder();
    let model = place.path().join("wrong.f");
    std::fs::write(&model, "set $dir=/tmp\ndefine fileset name=a,entries=5,leafdirs=3\n").unwrap();
    let done = run(&["workload", model.to_str().unwrap()]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stderr.contains("line 2") && done.stderr.contains("leafdirs"), "{done:?}");
}

#[test]
fn a_model_whose_folders_are_being_made_stops_at_once_and_leaves_none() {
    let folder = folder();
    let (model, place) = (folder.path().join("many.f"), folder.path().join("place"));
    let text = "define fileset name=big,path=/x,size=0,entries=200000,dirwidth=5,prealloc\n\
        define process name=p,instances=1\n{\n thread name=t,memsize=1m,instances=1\n {\n\
        flowop listdir name=l,filesetname=big\n }\n}\nrun 2\n";
    fs::write(&model, text).unwrap();
    let child = virtbench()
        .arg("workload")
        .arg(&model)
        .arg("--dir")
        .arg(&place)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let made = place.join("virtbench-files").join("big");
    wait_for("the first folders", || made.exists().then_some(()));
    signal(&child, "TERM");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(done.stderr.contains("interrupted") && !place.exists(), "{}", done.stderr);
}
