//! `virtbench load --spec` and `--export` as a user runs them.

use std::fs;

use crate::support::{folder, run};

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
fn a_file_s_fields_are_named_as_the_file_has_them() {
    let folder = folder();
    let spec = folder.path().join("load.json").display().to_string();
    fs::write(&spec, r#"{"jobs": [], "ratee": 3}"#).unwrap();
    let done = run(&["load", "--spec", &spec, "--target", "null"]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stderr.contains("`format`") && !done.stderr.contains("--format"), "{}", done.stderr);
    // What an option sets is named as that option.
    fs::write(&spec, "nothing of the kind\n").unwrap();
    let done = run(&["load", "--spec", &spec, "--target", "null"]);
    assert!(done.stderr.contains("name its --format"), "{}", done.stderr);
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

/// Two small jobs at once, then one that ends by what it has done.
const PHASES: &str = "[global]\nioengine=null\nrw=randread\nsize=1m\n[a]\nnumber_ios=100\n[b]\nwait_for=a\nstartdelay=20ms\nloops=2\n[c]\nstonewall\nio_size=64k\n";

#[test]
fn phases_of_a_fio_file_run_at_the_same_time_and_end_when_their_work_is_done() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    fs::write(&spec, PHASES).unwrap();
    let done = run(&["load", "--spec", &spec, "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let jobs = json["jobs"].as_array().unwrap();
    let operations: Vec<u64> = jobs.iter().map(|job| job["total"]["operations"].as_u64().unwrap()).collect();
    assert_eq!(operations, [100, 512, 16]);
    assert!(jobs.iter().all(|job| job["interrupted"] == false && job["errors"] == 0));
    let together = json["together"].as_array().unwrap();
    assert_eq!((together.len(), together[0]["operations"].as_u64()), (1, Some(612)));
    assert_eq!(together[0]["jobs"], serde_json::json!(["a", "b"]));
    let table = run(&["load", "--spec", &spec]);
    assert!(table.stdout.contains("[together] 2 jobs"), "{}", table.stdout);
}

#[test]
fn jobs_of_a_flow_start_operations_in_the_ratio_of_their_weights() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    // The second could do twice what its weight allows. It ends with the first: what it does until it notices is all that a busy host adds.
    for pace in ["thinktime=10ms", "rate_iops=100"] {
        let text = format!(
            "[global]\nioengine=null\nrw=randread\nsize=1m\ntime_based\nruntime=100\n\
             [a]\nflow=1\n{pace}\nnumber_ios=200\nruntime=0\nexitall\n[b]\nflow=4\nthinktime=1250us\n"
        );
        fs::write(&spec, text).unwrap();
        let done = run(&["load", "--spec", &spec, "--json"]);
        assert_eq!(done.code(), 0, "{pace}: {done:?}");
        let json = done.json();
        let operations = |job: usize| json["jobs"][job]["total"]["operations"].as_f64().unwrap();
        assert_eq!(operations(0), 200.0, "{json}");
        // Without a flow there are 1600 in these two seconds.
        assert!((795.0..1590.0).contains(&operations(1)), "{pace}: {}: {json}", operations(1));
        let plan = run(&["load", "--spec", &spec, "--dry-run"]).stdout;
        assert!(plan.contains("of weight 4 in flow 0"), "{plan}");
    }
}

#[test]
fn a_dry_run_prints_the_phases_and_runs_nothing() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    fs::write(&spec, PHASES).unwrap();
    let done = run(&["load", "--spec", &spec, "--dry-run"]);
    assert_eq!(done.code(), 0, "{done:?}");
    for word in [
        "phase 1 of 2",
        "[b] on null",
        "after a",
        "until 2 pass(es)",
        "phase 2 of 1",
        "until 64 KiB are done",
    ] {
        assert!(done.stdout.contains(word), "{word} is not in:\n{}", done.stdout);
    }
    let json = run(&["load", "--spec", &spec, "--dry-run", "--json"]).json();
    assert_eq!(json["phases"][1][0]["spec"]["amount"]["bytes"], 65536);
}

#[test]
fn a_job_of_a_file_from_somewhere_to_its_end_says_where_it_begins() {
    let folder = folder();
    let spec = folder.path().join("log.xml").display().to_string();
    let target = "<Target><Path>data</Path><BlockSize>8192</BlockSize><BaseFileOffset>8388608</BaseFileOffset>\
        <MaxFileSize>0</MaxFileSize></Target>";
    let span =
        format!("<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets>{target}</Targets></TimeSpan>");
    fs::write(&spec, format!("<Profile><TimeSpans>{span}</TimeSpans></Profile>")).unwrap();
    let done = run(&["load", "--spec", &spec, "--dry-run"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("all from 8 MiB on"), "{}", done.stdout);
}

#[test]
fn an_engine_that_loads_no_blocks_is_refused_even_if_lenient() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    fs::write(&spec, "[a]\nioengine=cpuio\ncpuload=50\n[b]\niodpeth=3\n").unwrap();
    for words in [&["load", "--spec", &spec][..], &["load", "--spec", &spec, "--lenient", "--target", "null"]]
    {
        let done = run(words);
        assert_eq!(done.code(), 2, "{done:?}");
        assert!(done.stderr.contains("line 2: ioengine=cpuio"), "{}", done.stderr);
        assert!(
            done.stderr.contains("\nline 5: iodpeth=3: fio has no such option; did you mean iodepth?"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn jobs_at_the_same_time_are_not_repeated() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    fs::write(&spec, PHASES).unwrap();
    let done = run(&["load", "--spec", &spec, "--repeat", "3"]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stderr.contains("--repeat") && done.stderr.contains("a, b"), "{}", done.stderr);
}

#[test]
fn a_job_that_ends_takes_the_others_with_it_and_steady_figures_end_a_job() {
    let folder = folder();
    let spec = folder.path().join("jobs.fio").display().to_string();
    let text = "[global]\nioengine=null\nsize=1m\ntime_based\nruntime=3600\nthinktime=1ms\n\
        [long]\n[steady]\nexitall\nsteadystate=iops:90%\nss_dur=400ms\nss_interval=100ms\n[never]\nstonewall\n";
    fs::write(&spec, text).unwrap();
    let done = run(&["load", "--spec", &spec, "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs.iter().map(|job| job["job"].as_str().unwrap()).collect::<Vec<_>>(), ["long", "steady"]);
    assert!(jobs.iter().all(|job| job["interrupted"] == false));
    assert!(jobs[1]["notes"].to_string().contains("steady after"), "{}", jobs[1]["notes"]);
}

#[test]
fn a_file_is_made_large_enough_for_later_phases() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let job = "bs=64k\nioengine=psync\nnumber_ios=1\n";
    let text = format!("[a]\nsize=1m\n{job}[b]\nstonewall\nsize=4m\n{job}");
    fs::write(path("jobs.fio"), text).unwrap();
    let (spec, target) = (path("jobs.fio"), path("t.img"));
    let done = run(&["load", "--spec", &spec, "--target", &target, "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(fs::metadata(&target).unwrap().len(), 4 << 20);
    assert_eq!(done.json()["jobs"][0]["spec"]["region_bytes"], 1 << 20);
    // One that is there and too small for a later phase is refused before the first.
    fs::write(&target, vec![1; 1 << 20]).unwrap();
    let done = run(&["load", "--spec", &spec, "--target", &target]);
    assert_eq!((done.code(), done.stdout.as_str()), (3, ""), "{done:?}");
    assert!(done.stderr.contains("less than the 4 MiB asked for"), "{}", done.stderr);
}
