//! `virtbench history`: a catalogue of runs, and where their figures changed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Finished, folder, run, two_environments};

/// A copy of a run, `days` later, in which `b` does `factor` of what it did.
fn later(first: &Path, days: u64, factor: f64) -> PathBuf {
    let folder = first.with_file_name(days.to_string());
    fs::create_dir(&folder).unwrap();
    let text = fs::read_to_string(first.join("run.json")).unwrap();
    let mut provenance: serde_json::Value = serde_json::from_str(&text).unwrap();
    provenance["started_unix_s"] = (provenance["started_unix_s"].as_u64().unwrap() + days * 86_400).into();
    fs::write(folder.join("run.json"), provenance.to_string()).unwrap();
    let lines = fs::read_to_string(first.join("results.jsonl")).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["environment"] == "b" {
            let rate = &mut record["outcome"]["total"]["bytes_per_second"];
            *rate = (rate.as_f64().unwrap() * factor).into();
        }
        record.to_string() + "\n"
    });
    fs::write(folder.join("results.jsonl"), lines.collect::<String>()).unwrap();
    folder
}

/// Twelve days, of which the last five are slower.
fn twelve_days(folder: &Path) -> PathBuf {
    let first = two_environments(folder, "runs/0", 1);
    for day in 1..12 {
        let wobble = 1.0 + 0.004 * (day % 3) as f64;
        later(&first, day, wobble * if day < 7 { 1.0 } else { 0.7 });
    }
    folder.join("runs")
}

fn history(catalogue: &Path, words: &[&str]) -> Finished {
    let catalogue = catalogue.join("history.sqlite").display().to_string();
    run(&[&["history"], words, &["--catalogue", &catalogue]].concat())
}

#[test]
fn a_change_over_time_is_told_with_its_day_on_the_page_and_by_the_exit_code() {
    let folder = folder();
    let runs = twelve_days(folder.path()).display().to_string();
    let listed = history(folder.path(), &["list", &runs, "--json"]).json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 12, "{listed}");
    let html = folder.path().join("history.html");
    let told = history(folder.path(), &["page", "--html", &html.display().to_string()]);
    assert_eq!(told.code(), 0, "only --fail-on makes it fail: {told:?}");
    for words in ["It got worse", "lower, worse since", "(7)", "b, all points"] {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("<title>History</title>") && page.contains("history-0-0"));
    let failed = history(folder.path(), &["page", "--fail-on", "regression"]);
    assert_eq!(failed.code(), 9, "{failed:?}");
    let json = history(folder.path(), &["page", "--json"]).json();
    assert_eq!(json["regression"], true, "{json}");
    let series = json["groups"][0]["series"].as_array().unwrap();
    let changed =
        series.iter().filter(|one| one["headline"] == true && one["changes"] != serde_json::json!([]));
    let changed: Vec<&str> = changed.map(|one| one["subject"].as_str().unwrap()).collect();
    assert_eq!(changed, ["b, all points", "b / a, all points"], "{json}");
}

#[test]
fn runs_are_filtered_tagged_and_forgotten() {
    let folder = folder();
    let first = two_environments(folder.path(), "runs/0", 1);
    let second = later(&first, 3, 1.0);
    let [runs, first, second] =
        [&folder.path().join("runs"), &first, &second].map(|path| path.display().to_string());
    let tagged = run(&["history", "tag", &second, "after", "quiet"]);
    assert_eq!((tagged.code(), tagged.stdout.as_str()), (0, "after\nquiet\n"), "{tagged:?}");
    assert_eq!(run(&["history", "tag", &second, "--remove", "quiet"]).stdout, "after\n");
    let table = history(folder.path(), &["list", &runs]);
    assert!(
        table.stdout.contains("compare") && table.stdout.contains("after") && table.stdout.contains(&first)
    );
    let listed = |words: &[&str]| {
        let json = history(folder.path(), &[&["list", "--json"], words].concat()).json();
        let runs = json["runs"].as_array().unwrap().iter();
        runs.map(|run| run["folder"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--tag", "after"]), std::slice::from_ref(&second));
    assert_eq!(listed(&["--study", "adapters"]), [""; 0]);
    assert_eq!(listed(&["--since", "2h"]).len(), 2);
    fs::remove_dir_all(&first).unwrap();
    assert_eq!(listed(&[]), [second]);
}

#[test]
fn what_is_no_catalogue_no_run_or_no_folder_is_refused() {
    let folder = folder();
    let foreign = folder.path().join("notes.txt");
    fs::write(&foreign, "not a catalogue at all, just notes. ".repeat(10)).unwrap();
    let [foreign, place] = [&foreign, folder.path()].map(|path| path.display().to_string());
    let refused = run(&["history", "list", "--catalogue", &foreign]);
    assert_eq!(refused.code(), 7, "{refused:?}");
    assert!(refused.stderr.contains("is no catalogue of virtbench"), "{}", refused.stderr);
    assert_eq!(history(folder.path(), &["list", "/nonexistent/runs"]).code(), 7);
    assert_eq!(run(&["history", "tag", &place, "x"]).code(), 7);
    assert_eq!(history(folder.path(), &["page", "--since", "yesterday"]).code(), 2);
    let empty = history(folder.path(), &["list", &place]);
    assert!(empty.code() == 0 && empty.stdout.contains("no runs"), "{empty:?}");
}
