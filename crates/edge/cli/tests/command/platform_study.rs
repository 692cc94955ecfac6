//! `study platform`: the parts are the other studies, in folders of their own, with a score over them.

use std::fs;
use std::path::Path;

use crate::support::{Finished, finish, folder, run, signal, virtbench, wait_for};

const SHORT: [&str; 8] =
    ["study", "platform", "--domains", "storage,memory", "--accelerator", "uml", "--repetitions", "1"];

fn study(out: &Path, more: &[&str]) -> Finished {
    let out = out.display().to_string();
    run(&[&SHORT[..], &["--out", &out], more].concat())
}

#[test]
fn domains_are_measured_by_their_studies_and_the_score_is_their_mean() {
    let place = folder();
    let out = place.path().join("run");
    let weights = place.path().join("weights.toml");
    fs::write(&weights, "storage = 2\n").unwrap();
    let done = study(&out, &["--json", "--weights", &weights.display().to_string()]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!(json["of_domains"], serde_json::json!(["storage", "memory"]));
    let ratio = |index: usize| json["domains"][index]["ratio"]["value"].as_f64().unwrap();
    let score = json["score"]["value"].as_f64().unwrap();
    let by_hand = (ratio(0).powi(2) * ratio(1)).cbrt();
    assert!((score - by_hand).abs() < 1e-6 * by_hand, "{score} {by_hand}");
    // A part can be opened alone, and its own page is what the card links to.
    for part in ["storage/1/native-vs-vm", "memory/1/native", "memory/1/vm"] {
        let folder = out.join(part).display().to_string();
        assert_eq!(run(&["report", &folder]).code(), 0, "{part}");
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains(&format!("href=\"{part}/report.html\"")), "{part}");
    }
    let storage = json["domains"][0]["sentences"][0].as_str().unwrap();
    assert!(storage.contains("of native throughput"), "{storage}");
    // Nothing is left to do, and the parts are not run again.
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    let again = run(&["study", "platform", "--resume", "--out", &out.display().to_string()]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert!(again.stdout.contains("the score over 2 domains, storage and memory"), "{}", again.stdout);
    assert_eq!(fs::read_to_string(out.join("results.jsonl")).unwrap(), results);
    let markdown = run(&["report", &out.display().to_string(), "--format", "markdown"]);
    assert!(markdown.stdout.contains("the score over 2 domains, storage and memory"), "{markdown:?}");
}

#[test]
fn a_platform_that_was_killed_goes_on_within_the_part_that_was_under_way() {
    let place = folder();
    let out = place.path().join("run");
    let child = virtbench().args(SHORT).arg("--out").arg(&out).spawn().unwrap();
    let part = out.join("storage/1/native-vs-vm/results.jsonl");
    let lines = || fs::read_to_string(&part).map_or(0, |text| text.lines().count());
    wait_for("points of storage", || (lines() >= 2).then_some(()));
    signal(&child, "KILL");
    assert!(!finish(child).status.success());
    let before = fs::read_to_string(&part).unwrap();
    let whole = before.rfind('\n').map_or("", |end| &before[..end]);
    let done = run(&["study", "platform", "--resume", "--out", &out.display().to_string()]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(fs::read_to_string(&part).unwrap().starts_with(whole), "what was measured is kept");
}

#[test]
fn what_this_host_lacks_has_no_part_and_a_platform_of_nothing_has_a_code_of_its_own() {
    let place = folder();
    let out = place.path().join("run");
    let out_words = out.display().to_string();
    let words = ["study", "platform", "--domains", "storage", "--accelerator", "kvm", "--repetitions", "1"];
    let kernel = place.path().join("none").display().to_string();
    let mut command = virtbench();
    command.args(words).args(["--out", &out_words]).env("VIRTBENCH_QEMU", kernel);
    let done = finish(command.spawn().unwrap());
    assert_eq!(done.code(), 4, "{done:?}");
    assert!(done.stdout.contains("Storage has no part in the score: "), "{done:?}");
    assert!(done.stdout.contains("there is no score"), "{done:?}");
}

#[test]
fn domains_and_weights_that_are_not_known_are_refused_with_those_that_are() {
    let place = folder();
    let file = place.path().join("weights.toml");
    let path = file.display().to_string();
    let refused = |words: &[&str], expected: &str| {
        let done = run(&[&["study", "platform"], words].concat());
        assert_eq!(done.code(), 2, "{done:?}");
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    };
    refused(
        &["--domains", "disk"],
        "disk is none of the profile minute: storage, network, memory, processor",
    );
    fs::write(&file, "disk = 1\n").unwrap();
    refused(&["--weights", &path], "--weights: disk is no domain");
    fs::write(&file, "storage = -1\n").unwrap();
    refused(&["--weights", &path], "--weights: a weight is zero or more");
    fs::write(&file, "storage\n").unwrap();
    refused(&["--weights", &path], "weights.toml");
}
