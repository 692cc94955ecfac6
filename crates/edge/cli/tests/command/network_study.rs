//! `study network` on real paths: natively, to a guest and between guests.

use std::fs;
use std::path::Path;

use crate::support::sshd::Sshd;
use crate::support::{Finished, finish, folder, run, signal, virtbench, wait_for};

fn study(out: &Path, more: &[&str]) -> Finished {
    let out = out.display().to_string();
    let words = ["study", "network", "--time", "150ms", "--ramp", "30ms", "--streams", "2", "--out", &out];
    run(&[&words[..], more].concat())
}

/// The value of a sample of a side.
fn value(json: &serde_json::Value, side: &str, sample: &str) -> f64 {
    let sides = json["sides"].as_array().unwrap();
    let side = sides.iter().find(|one| one["name"] == side).unwrap_or_else(|| panic!("{side}: {json}"));
    let samples = side["samples"].as_array().unwrap();
    let found =
        samples.iter().find(|one| one["name"] == sample).unwrap_or_else(|| panic!("{sample}: {side}"));
    found["value"]["value"].as_f64().unwrap()
}

/// Everything is there and something has passed; on a busy host a guest may stand still for as long as one kind of traffic is measured.
fn is_measured(json: &serde_json::Value, side: &str) {
    let all = |names: &[&str]| names.iter().map(|name| value(json, side, name)).collect::<Vec<f64>>();
    let streams =
        all(&["TCP to, 1 stream", "TCP from, 1 stream", "TCP to, 2 streams", "TCP from, 2 streams"]);
    assert!(streams.iter().all(|rate| *rate >= 0.0) && streams.iter().sum::<f64>() > 0.0, "{side}: {json}");
    assert!(value(json, side, "datagrams received") >= 0.0, "{side}: {json}");
    let answered = all(&["requests", "request time, 99 %", "connections", "connection time, median"]);
    assert!(answered.iter().all(|one| *one > 0.0), "{side}: {json}");
}

#[test]
fn paths_natively_to_a_guest_and_between_guests_are_measured_side_by_side() {
    let place = folder();
    let out = place.path().join("run");
    let more = ["--accelerator", "uml", "--paths", "native,tap,guests,user", "--repetitions", "1", "--json"];
    let done = study(&out, &more);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    for side in ["native", "tap", "guests"] {
        is_measured(&json, side);
        assert!((0.0..=100.0).contains(&value(&json, side, "datagrams lost")), "{json}");
    }
    let ratio = |side: &str| value(&json, side, "requests") / value(&json, "native", "requests");
    let tap = json["sides"].as_array().unwrap().iter().find(|side| side["name"] == "tap").unwrap();
    let requests = tap["samples"].as_array().unwrap().iter().find(|one| one["name"] == "requests").unwrap();
    let said = requests["ratio"]["value"].as_f64().unwrap();
    assert!((said - ratio("tap")).abs() < 1e-3 * said, "{requests}");
    let user = json["sides"].as_array().unwrap().iter().find(|side| side["name"] == "user").unwrap();
    assert!(user["unavailable"].as_str().unwrap().contains("User Mode Linux"), "{user}");
    let csv = fs::read_to_string(out.join("results.csv")).unwrap();
    assert!(csv.contains("native,0,") && csv.contains("\"TCP from, 1 stream\",B/s,"), "{csv}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for words in
        ["What virtualization costs the network", "% that are quicker", "TCP to, 1 stream", "streams"]
    {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn an_emulated_guest_is_reached_by_the_user_mode_network_and_by_large_packets() {
    let place = folder();
    let out = place.path().join("run");
    let more =
        ["--accelerator", "tcg", "--paths", "user,tap", "--mtu", "1500,9000", "--repetitions", "1", "--json"];
    let done = study(&out, &more);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let names: Vec<&str> =
        json["sides"].as_array().unwrap().iter().map(|side| side["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["user-1500", "tap-1500", "tap-9000"]);
    names.into_iter().for_each(|side| is_measured(&json, side));
}

#[test]
fn a_run_that_was_killed_goes_on_and_leaves_no_process() {
    let place = folder();
    let out = place.path().join("run");
    let words =
        ["study", "network", "--paths", "native", "--repetitions", "2", "--time", "300ms", "--ramp", "10ms"];
    let child = virtbench().args(words).arg("--out").arg(&out).spawn().unwrap();
    let results = out.join("results.jsonl");
    wait_for("the first repetition", || fs::read_to_string(&results).ok().filter(|text| text.contains('\n')));
    signal(&child, "KILL");
    let killed = finish(child);
    assert!(!killed.status.success());
    let out_words = out.display().to_string();
    let done = run(&[&words[..], &["--out", &out_words, "--resume", "--json"]].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(value(&done.json(), "native", "requests") > 0.0);
    let lines = fs::read_to_string(&results).unwrap().lines().count();
    assert_eq!(lines, 2, "each repetition once");
    let other = run(&[
        "study",
        "network",
        "--paths",
        "native",
        "--repetitions",
        "3",
        "--out",
        &out_words,
        "--resume",
    ]);
    assert_eq!(other.code(), 7, "{other:?}");
    assert!(other.stderr.contains("repetitions"), "{other:?}");
}

#[test]
fn a_path_that_makes_no_sense_is_refused_by_name() {
    let done = run(&["study", "network", "--paths", "cable"]);
    assert_eq!(done.code(), 2, "{done:?}");
    assert!(done.stderr.contains("--paths") && done.stderr.contains("guests-vhost"), "{done:?}");
    let done = run(&["study", "network", "--accelerator", "uml", "--vcpus", "2", "--paths", "tap"]);
    assert_eq!(done.code(), 4, "{done:?}");
}

#[test]
fn machines_that_are_there_are_measured_and_nothing_stays_on_them() {
    let (sshd, place) = (Sshd::start(), folder());
    let out = place.path().join("run");
    let between = format!("native:,{}", sshd.address("far"));
    let done = study(&out, &["--between", &between, "--repetitions", "1", "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    for side in ["native", "machines"] {
        is_measured(&json, side);
    }
    let machines = json["sides"].as_array().unwrap().iter().find(|side| side["name"] == "machines").unwrap();
    assert!(!machines.to_string().contains(", CPU"), "nobody sees all of their processors: {machines}");
    assert!(sshd.is_clean("far"));
    for wrong in [
        "native:,native:",
        "ssh://metal/srv",
        "cable:,ssh://metal/srv",
        "native:,ssh://metal/srv?device=/dev/sdb",
    ] {
        let refused = study(&place.path().join("no"), &["--between", wrong]);
        assert_eq!(refused.code(), 2, "{refused:?}");
    }
    let gone = format!("native:,{}", sshd.address_with("far", "key", 1));
    let unreachable = study(&place.path().join("gone"), &["--between", &gone, "--repetitions", "1"]);
    assert!(unreachable.code() == 5 && unreachable.stderr.contains("ssh"), "{unreachable:?}");
}
