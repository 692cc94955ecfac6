//! `virtbench compare`: two runs of one plan, before a change and after it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, folder, run, two_environments, virtbench};

/// A copy of a run in which an environment does `factor` of what it did, after it by the clock.
fn changed(before: &Path, name: &str, environment: &str, factor: f64) -> PathBuf {
    let after = before.with_file_name(name);
    fs::create_dir(&after).unwrap();
    fs::copy(before.join("run.json"), after.join("run.json")).unwrap();
    let lines = fs::read_to_string(before.join("results.jsonl")).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        let later = record["started_unix_ns"].as_u64().unwrap() + 3_600_000_000_000;
        record["started_unix_ns"] = later.into();
        if record["environment"] == environment {
            let rate = &mut record["outcome"]["total"]["bytes_per_second"];
            *rate = (rate.as_f64().unwrap() * factor).into();
        }
        record.to_string() + "\n"
    });
    fs::write(after.join("results.jsonl"), lines.collect::<String>()).unwrap();
    after
}

fn compare(before: &Path, after: &Path, more: &[&str]) -> Finished {
    let [before, after] = [before, after].map(|path| path.display().to_string());
    run(&[&["compare", &before, &after][..], more].concat())
}

#[test]
fn a_run_that_got_worse_is_told_by_sentence_table_page_and_exit_code() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 4);
    // On a busy host what was really measured spreads over a factor of ten.
    let after = changed(&before, "after", "b", 0.002);
    let page = folder.path().join("page.html");
    let told = compare(&before, &after, &["--html", &page.display().to_string()]);
    assert_eq!(told.code(), 0, "only --fail-on makes it fail: {told:?}");
    for words in ["It got worse: b's throughput is 0.002", "not measured in turn", "all points", "worse"] {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    assert!(fs::read_to_string(&page).unwrap().contains("Before and after"));
    let failed = compare(&before, &after, &["--fail-on", "regression"]);
    assert_eq!(failed.code(), 9, "{failed:?}");
    assert!(failed.stderr.contains("It got worse"), "{}", failed.stderr);
    for words in [&["--fail-on", "regression"][..], &["--fail-on", "regression", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut unread = virtbench();
        unread.arg("compare").args([&before, &after]).args(words).stdout(writer);
        assert_eq!(unread.status().unwrap().code(), Some(9), "nobody reads what is printed: {words:?}");
    }
    let json = compare(&before, &after, &["--json"]).json();
    assert_eq!((&json["regression"], &json["alternated"]), (&true.into(), &false.into()), "{json}");
    let [a, b] = [0, 1].map(|index| &json["environments"][index]);
    assert_eq!(
        (&a["name"], &b["name"], &b["overall"][0]["verdict"]),
        (&"a".into(), &"b".into(), &"worse".into())
    );
    let markdown = compare(&before, &after, &["--markdown"]).stdout;
    assert!(markdown.contains("| environment | point | throughput |"), "{markdown}");
    assert!(markdown.contains("| b | all | 0.002"), "{markdown}");
}

#[test]
fn a_run_that_got_better_or_is_the_same_is_no_regression() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 4);
    for (name, factor) in [("same", 1.0), ("better", 10.0)] {
        let after = changed(&before, name, "b", factor);
        let told = compare(&before, &after, &["--fail-on", "regression"]);
        assert_eq!(told.code(), 0, "{name}: {told:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 4);
    let missing = compare(&before, &folder.path().join("missing"), &[]);
    assert_eq!(missing.code(), 7, "{missing:?}");
    let margin = compare(&before, &before, &["--margin", "0%"]);
    assert_eq!(margin.code(), 2, "{margin:?}");
    let empty = changed(&before, "empty", "b", 1.0);
    fs::write(empty.join("results.jsonl"), "").unwrap();
    for more in [&[][..], &["--fail-on", "regression"]] {
        let told = compare(&before, &empty, more);
        assert_eq!(told.code(), 10, "{told:?}");
        assert!(told.stdout.contains("no point in common"), "{}", told.stdout);
    }
    let unwritable = compare(&before, &before, &["--html", "/proc/page.html"]);
    assert!(unwritable.code() == 1 && unwritable.stderr.contains("--html"), "{unwritable:?}");
}

/// A copy of a run, after it by the clock, with every record changed.
fn edited(before: &Path, name: &str, edit: impl Fn(&mut serde_json::Value)) -> PathBuf {
    let after = changed(before, name, "none", 1.0);
    let path = after.join("results.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        edit(&mut record);
        record.to_string() + "\n"
    });
    let lines: String = lines.collect();
    fs::write(path, lines).unwrap();
    after
}

#[test]
fn a_disk_that_completes_nothing_is_worse() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 2);
    let stopped = |record: &mut serde_json::Value| {
        let total = &mut record["outcome"]["total"];
        for (name, nothing) in
            [("operations", 0.into()), ("bytes", 0.into()), ("latency_ns", serde_json::Value::Null)]
        {
            total[name] = nothing;
        }
        (total["iops"], total["bytes_per_second"]) = (0.0.into(), 0.0.into());
    };
    let everywhere = edited(&before, "everywhere", stopped);
    let once = edited(&before, "once", |record| {
        if record["environment"] == "b" && record["repetition"] == 1 {
            stopped(record);
        }
    });
    for after in [everywhere, once] {
        let told = compare(&before, &after, &["--fail-on", "regression"]);
        assert_eq!(told.code(), 9, "{told:?}");
        assert!(told.stdout.contains("b completed nothing in some repetition"), "{}", told.stdout);
    }
}

#[test]
fn what_cannot_be_judged_has_an_exit_code_of_its_own() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 2);
    let code = |after: &Path, more: &[&str]| {
        let told = compare(&before, after, &[&["--fail-on"], more].concat());
        (told.code(), told.stderr.clone())
    };
    let renamed = edited(&before, "renamed", |record| {
        if record["environment"] == "b" {
            record["environment"] = "c".into();
        }
    });
    assert_eq!(code(&renamed, &["regression"]).0, 0, "what both have was judged");
    let (undecided, said) = code(&renamed, &["regression,undecided"]);
    assert!(undecided == 10 && said.contains("b is in one run only"), "{said}");
    let (same, said) = code(&before, &["regression"]);
    assert!(same == 10 && said.contains("the same run"), "{said}");
    let busy = edited(&before, "busy", |record| {
        record["host"]["others_percent"] = 5000.0.into();
        record["host"]["processors"] = 2.into();
    });
    let (busier, said) = code(&busy, &["regression"]);
    assert!(busier == 10 && said.contains("Not comparable: the second host was"), "{said}");
}

#[test]
fn past_runs_in_a_catalogue_tell_how_much_runs_differ() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 2);
    let catalogue = folder.path().join("history.sqlite").display().to_string();
    for (day, (name, factor)) in
        [("past/1", 0.5), ("past/2", 2.0), ("past/3", 0.4), ("past/4", 3.0)].into_iter().enumerate()
    {
        fs::create_dir_all(folder.path().join("past")).unwrap();
        let past = changed(&before, name, "b", factor);
        let path = past.join("run.json");
        let mut run: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        run["started_unix_s"] = (1_700_000_000 + day as u64).into();
        fs::write(path, run.to_string()).unwrap();
    }
    let past = folder.path().join("past").display().to_string();
    assert_eq!(run(&["history", "list", &past, "--catalogue", &catalogue]).code(), 0);
    let after = changed(&before, "after", "b", 0.5);
    let unknown = compare(&before, &after, &["--catalogue", "/nonexistent"]);
    assert_eq!(unknown.code(), 7, "{unknown:?}");
    let known = compare(&before, &after, &["--catalogue", &catalogue, "--fail-on", "regression"]);
    assert!(known.stdout.contains("known from 4 comparable ones"), "{}", known.stdout);
    assert_eq!(known.code(), 0, "half as much is nothing unusual: {known:?}");
}
