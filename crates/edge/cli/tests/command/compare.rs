//! `virtbench compare`: two runs of one plan, before a change and after it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, folder, run, two_environments};

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
    let told = compare(&before, &empty, &["--fail-on", "regression"]);
    assert_eq!(told.code(), 0, "{told:?}");
    assert!(told.stdout.contains("no point in common"), "{}", told.stdout);
    let unwritable = compare(&before, &before, &["--html", "/proc/page.html"]);
    assert!(unwritable.code() == 1 && unwritable.stderr.contains("--html"), "{unwritable:?}");
}
