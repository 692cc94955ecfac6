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

/// Gives every measurement of a run the same rate: on a busy host one may have completed nothing, and then it has no ratio.
fn level(run: &Path) {
    let text = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["outcome"]["total"]["bytes_per_second"] = 1e7.into();
        record.to_string() + "\n"
    });
    fs::write(run.join("results.jsonl"), lines.collect::<String>()).unwrap();
}

/// Twelve days, of which the last five are slower.
fn twelve_days(folder: &Path) -> PathBuf {
    let first = two_environments(folder, "runs/0", 1);
    level(&first);
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
fn a_newest_run_that_cannot_be_judged_has_an_exit_code_of_its_own() {
    let folder = folder();
    let first = two_environments(folder.path(), "runs/0", 1);
    let runs = folder.path().join("runs").display().to_string();
    for day in 1..3 {
        later(&first, day, 1.0 + 0.001 * day as f64);
    }
    let gate = |words: &[&str]| {
        history(folder.path(), &[&["page", &runs, "--fail-on", "regression"], words].concat())
    };
    let few = gate(&[]);
    assert!(few.code() == 10 && few.stderr.contains("2 comparable runs before it"), "{few:?}");
    let none = gate(&["--study", "TYPO"]);
    assert!(
        none.code() == 10 && none.stderr.contains("no run is of study TYPO; there are runs of compare"),
        "{none:?}"
    );
    later(&first, 3, 1.0);
    assert_eq!(gate(&[]).code(), 0, "{:?}", gate(&[]));
    later(&first, 4, 0.1);
    let worse = gate(&[]);
    assert!(
        worse.code() == 9 && worse.stdout.contains("in the newest run"),
        "the first run after it: {worse:?}"
    );
}

#[test]
fn runs_that_differ_are_joined_where_that_is_asked_for() {
    let folder = folder();
    let first = two_environments(folder.path(), "runs/0", 1);
    let runs = folder.path().join("runs").display().to_string();
    for day in 1..16 {
        let later = later(&first, day, (1.0 + 0.001 * (day % 3) as f64) * if day < 8 { 1.0 } else { 0.5 });
        let path = later.join("run.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut run: serde_json::Value = serde_json::from_str(&text).unwrap();
        // A grid's name is no part of what is measured, a device is.
        run["plan"]["grid"] = format!("./grid-{day}.toml").into();
        if day >= 8 {
            run["host"]["disk"]["device"] = "/dev/other".into();
        }
        fs::write(&path, run.to_string()).unwrap();
    }
    let page = |words: &[&str]| {
        history(folder.path(), &[&["page", &runs, "--fail-on", "regression"], words].concat())
    };
    let apart = page(&[]);
    assert_eq!(apart.code(), 0, "{apart:?}");
    for words in ["they differ in device: ", "(8 runs)", "--join device"] {
        assert!(apart.stdout.contains(words), "{words}: {}", apart.stdout);
    }
    let joined = page(&["--join", "device"]);
    assert!(joined.code() == 9 && joined.stdout.contains("/dev/other"), "{joined:?}");
    let unknown = page(&["--join", "colour"]);
    assert!(
        unknown.code() == 2 && unknown.stderr.contains("they have: ") && unknown.stderr.contains("device"),
        "{unknown:?}"
    );
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
