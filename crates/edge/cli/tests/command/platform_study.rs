//! `study platform`: the parts are the other studies, in folders of their own, with a score over them.

use std::fs;
use std::path::Path;

use crate::support::{Finished, children, finish, folder, is_alive, run, signal, virtbench, wait_for};

const SHORT: [&str; 8] =
    ["study", "platform", "--domains", "storage,memory", "--accelerator", "uml", "--repetitions", "1"];

const IN_PHASES: [&str; 8] = [
    "study",
    "platform",
    "--domains",
    "storage,network,memory",
    "--accelerator",
    "uml",
    "--repetitions",
    "1",
];

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
    let run_folder = out.display().to_string();
    let markdown = run(&["report", &run_folder, "--format", "markdown"]);
    assert!(markdown.stdout.contains("the score over 2 domains, storage and memory"), "{markdown:?}");
    let line = run(&["report", &run_folder, "--format", "line"]);
    assert!(line.stdout.contains("of this host: storage ") && line.stdout.lines().count() == 1, "{line:?}");
    against_it(place.path(), &run_folder);
}

/// Memory once more, with that run in place of this host.
fn against_it(place: &Path, before: &str) {
    let out = place.join("after").display().to_string();
    let memory = ["study", "platform", "--domains", "memory", "--repetitions", "1", "--out", &out];
    let refused = run(&[&memory[..], &["--accelerator", "tcg", "--reference", before]].concat());
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("executed by UML, those of this run are to be by TCG"), "{refused:?}");
    let done = run(&[&memory[..], &["--accelerator", "uml", "--reference", before, "--json"]].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert!(json["score"]["value"].as_f64().unwrap() > 0.0, "{json}");
    assert!(json["headline"].as_str().unwrap().contains(&format!("of {before}")), "{json}");
    // Two runs of other domains have no score in common; the domain that both have is compared.
    let html = place.join("moved.html");
    let compared = run(&["compare", before, &out, "--html", &html.display().to_string()]);
    assert!(fs::read_to_string(html).unwrap().contains("Two runs of a platform"));
    assert_eq!(compared.code(), 0, "{compared:?}");
    assert!(compared.stdout.contains("The scores cannot be compared"), "{compared:?}");
    assert!(compared.stdout.contains("storage in one run only"), "{compared:?}");
}

#[test]
fn two_environments_take_the_place_of_this_host_and_a_vm() {
    let place = folder();
    let out = place.path().join("run").display().to_string();
    let done = run(&[
        "study",
        "platform",
        "--domains",
        "network,memory",
        "--repetitions",
        "1",
        "--out",
        &out,
        "--environment",
        "base=native:",
        "--environment",
        "other=native:",
        "--json",
    ]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!(json["of_domains"], serde_json::json!(["memory"]));
    assert!(json["headline"].as_str().unwrap().starts_with("Other reaches "), "{json}");
    let network = json["domains"][0]["unavailable"].as_str().unwrap();
    assert!(network.contains("not in environments that are named"), "{network}");
}

/// The processes of a platform: its studies, what they have started, and so on.
fn descendants(pid: u32) -> Vec<u32> {
    let own: Vec<u32> = children(pid).into_iter().map(|(child, _)| child).collect();
    own.iter().flat_map(|child| descendants(*child)).chain(own.clone()).collect()
}

#[test]
fn a_platform_that_was_killed_in_any_phase_goes_on_within_the_part_that_was_under_way() {
    let place = folder();
    let out = place.path().join("run");
    let out_words = out.display().to_string();
    let resumed = ["study", "platform", "--resume", "--out", &out_words];
    let lines = |part: &str| fs::read_to_string(out.join(part)).map_or(0, |text| text.lines().count());
    let storage = "storage/1/native-vs-vm/results.jsonl";
    let mut kept = String::new();
    // In the middle of a study, at the beginning of one, and between the two of a domain.
    let phases: [(&str, &dyn Fn() -> bool); 4] = [
        ("points of storage", &|| lines(storage) >= 2),
        ("network begins", &|| out.join("network/1/network/run.json").is_file()),
        ("memory natively", &|| lines("memory/1/native/run.json") > 0),
        ("memory in a VM", &|| lines("memory/1/vm/run.json") > 0),
    ];
    for (number, (phase, is_reached)) in phases.into_iter().enumerate() {
        let mut command = virtbench();
        match number {
            0 => command.args(IN_PHASES).args(["--out", &out_words]),
            _ => command.args(resumed),
        };
        let child = command.spawn().unwrap();
        wait_for(phase, || is_reached().then_some(()));
        let all = descendants(child.id());
        signal(&child, "KILL");
        assert!(!finish(child).status.success());
        wait_for("its processes to end", || all.iter().all(|pid| !is_alive(*pid)).then_some(()));
        if number == 0 {
            let before = fs::read_to_string(out.join(storage)).unwrap();
            kept = before.rfind('\n').map_or("", |end| &before[..end]).to_owned();
        }
    }
    let done = run(&resumed);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("the score over 3 domains, storage, network and memory"), "{done:?}");
    assert!(fs::read_to_string(out.join(storage)).unwrap().starts_with(&kept), "what was measured is kept");
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
    refused(&["--domains", "tiles"], "tiles is none of the profile minute");
    refused(
        &["--environment", "native:", "--environment", "a=native:", "--environment", "b=native:"],
        "two are compared",
    );
    refused(&["--reference", &path], &path);
    fs::write(&file, "disk = 1\n").unwrap();
    refused(&["--weights", &path], "--weights: disk is no domain");
    fs::write(&file, "storage = -1\n").unwrap();
    refused(&["--weights", &path], "--weights: a weight is zero or more");
    fs::write(&file, "storage\n").unwrap();
    refused(&["--weights", &path], "weights.toml");
}
