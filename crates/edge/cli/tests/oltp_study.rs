//! `virtbench study oltp` for real: PostgreSQL's appliance natively and in a guest.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{finish, folder, virtbench};

const SHORT: [&str; 12] = [
    "study",
    "oltp",
    "--users",
    "1",
    "--repetitions",
    "1",
    "--time",
    "3s",
    "--search-time",
    "3s",
    "--ramp-up",
    "200ms",
];

#[test]
fn a_database_is_measured_natively_and_in_a_guest_from_the_same_bytes() {
    let temp = folder();
    let out = temp.path().join("run");
    let run = |more: &[&str]| {
        let mut command = virtbench();
        command.args(SHORT).arg("--out").arg(&out).args(more);
        finish(command.spawn().unwrap())
    };
    let finished = run(&["--accelerator", "tcg", "--json"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let rate = &summary["saturated_ratios"][0]["ratios"]["transactions_per_second"]["value"];
    assert!(rate.as_f64().is_some_and(|ratio| ratio > 0.0 && ratio < 1.0), "emulated: {summary}");
    assert!(
        summary["sides"].as_array().unwrap().iter().all(|side| side["failures"] == serde_json::json!([]))
    );
    assert!(summary["cautions"].to_string().contains("TCG emulates"), "{summary}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("median round trip") && !page.contains("No guest has booted."));
    assert!(!out.join("database.ext4").exists(), "the copy of the data goes with its run");
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert_eq!(results.lines().count(), 4, "each side once in the search and once at saturation");
    let again = run(&["--resume"]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read_to_string(out.join("results.jsonl")).unwrap(), results, "nothing was missing");
}

#[test]
fn what_a_database_study_cannot_do_is_refused_before_anything_is_measured() {
    let temp = folder();
    let out = temp.path().join("run");
    for (words, code, said) in [
        (&["--users", "few"][..], 2, "write auto, or such as 1,4,16"),
        (&["--users", "0"], 2, "no number of users"),
        (&["--vcpus", "1000"], 2, "a side of 1000 processors"),
        (&["--vcpus", "1", "--kernel", "/nowhere"], 4, "/nowhere"),
    ] {
        let mut command = virtbench();
        command.args(["study", "oltp", "--accelerator", "tcg", "--out"]).arg(&out).args(words);
        let finished = finish(command.spawn().unwrap());
        assert_eq!(finished.code(), code, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(said), "{words:?}: {finished:?}");
        assert!(!out.exists(), "{words:?}");
    }
}
