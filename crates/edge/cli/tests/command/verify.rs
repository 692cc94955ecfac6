//! An application profiled here, predicted, and run in a real guest.

use std::fs;
use std::path::Path;

use crate::support::{Finished, finish, folder, run, virtbench};
use serde_json::{Value, json};

/// Reads, writes and flushes, and says so.
const SCRIPT: &str = "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=f$i bs=64k count=16 conv=fsync 2>/dev/null; \
                      sleep 0.1; done; cat begin; echo rate 12.5";

fn profile(folder: &Path, name: &str, more: &[&str], command: &[&str]) -> (String, Finished) {
    let path = folder.join(name).display().to_string();
    let mut words = vec!["profile", "--out", &path, "--workers", "1"];
    words.extend(more);
    words.push("--");
    words.extend(command);
    let child = virtbench().args(&words).current_dir(folder).spawn().unwrap();
    (path.clone(), finish(child))
}

/// Costs of a VM that takes three times as long for everything, on the profile's host.
fn costs(folder: &Path, profile: &str) -> String {
    let profile: Value = serde_json::from_str(&fs::read_to_string(profile).unwrap()).unwrap();
    let pieces: Vec<Value> = ["user", "system", "copy", "wait"]
        .iter()
        .map(|part| json!({"name": part, "part": part, "reference_ns": 10.0, "subject_ns": 30.0}))
        .collect();
    let costs = json!({
        "costs_format": 1, "host": profile["host"], "adapter": "virtio-blk", "accelerator": "tcg", "vcpus": 1,
        "costs": pieces,
    });
    let path = folder.join("costs.json");
    fs::write(&path, costs.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn an_application_is_predicted_run_in_a_guest_and_the_error_published() {
    let folder = folder();
    fs::write(folder.path().join("begin"), "what the disk begins with\n").unwrap();
    let metric = ["--metric", "rate ([0-9.]+)"];
    let (profile, made) = profile(folder.path(), "app.json", &metric, &["sh", "-c", SCRIPT]);
    assert_eq!(made.code(), 0, "{made:?}");
    let text: Value = serde_json::from_str(&fs::read_to_string(&profile).unwrap()).unwrap();
    assert_eq!((&text["capacity"]["value"], &text["command"][0]), (&json!(12.5), &json!("sh")));
    let costs = costs(folder.path(), &profile);
    let begin = folder.path().join("disk");
    fs::create_dir(&begin).unwrap();
    fs::copy(folder.path().join("begin"), begin.join("begin")).unwrap();
    let (begin, here) = (begin.display().to_string(), folder.path().display().to_string());
    let [dd, sleep, cat] = ["dd", "sleep", "cat"].map(which);
    let page = folder.path().join("page.html").display().to_string();
    let common =
        ["predict", "--profile", &profile, "--costs", &costs, "--target-dir", &here, "--size", "64MiB"];
    let tried = ["--verify", "--memory", "512MiB", "--with", &dd, "--with", &sleep, "--with", &cat];
    let rest = ["--disk-from", &begin, "--json", "--html", &page];
    let found = run(&[&common[..], &tried, &rest].concat());
    assert_eq!(found.code(), 0, "{found:?}");
    let found = found.json();
    assert_eq!(found["method"], "scaling");
    // It says the same rate wherever it runs, so that the truth is known.
    assert_eq!(found["actual_capacity"], 12.5, "{found}");
    let predicted = found["capacity"].as_f64().unwrap();
    let error = found["error_percent"].as_f64().unwrap();
    assert!(predicted < 12.5 && (error - 100.0 * (12.5 - predicted) / 12.5).abs() < 1e-4, "{found}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("in fact") && page.contains("% off"), "the page does not show the error");
    // Nothing is left of the disk.
    assert!(
        !fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .any(|file| file.path().extension().is_some_and(|e| e == "img"))
    );

    // A bad end in the guest, such as a program that was not taken along, is no figure.
    let mut without: Value = text;
    without["command"] = json!([dd, "if=begin", "of=again"]);
    fs::write(&profile, without.to_string()).unwrap();
    let bad = run(&[&common[..], &["--verify", "--memory", "512MiB"]].concat());
    assert!(bad.code() == 5 && bad.stderr.contains("in the VM"), "{bad:?}");
}

#[test]
fn what_cannot_be_tried_is_said() {
    let folder = folder();
    let (profile, made) = profile(folder.path(), "app.json", &[], &["sh", "-c", SCRIPT]);
    // The script reads a file that is not there, and goes on.
    assert_eq!(made.code(), 0, "{made:?}");
    let costs = costs(folder.path(), &profile);
    let other = folder.path().join("other.json");
    let mut changed: Value = serde_json::from_str(&fs::read_to_string(&costs).unwrap()).unwrap();
    changed["host"]["cpu"] = "another".into();
    fs::write(&other, changed.to_string()).unwrap();
    changed["costs"][0]["subject_ns"] = json!(0);
    let wrong = folder.path().join("wrong.json");
    fs::write(&wrong, changed.to_string()).unwrap();
    let (other, wrong) = (other.display().to_string(), wrong.display().to_string());
    let none = folder.path().join("none.json");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&profile).unwrap()).unwrap();
    text["command"] = json!([]);
    fs::write(&none, text.to_string()).unwrap();
    let none = none.display().to_string();
    for (arguments, code, said) in [
        (vec!["--profile", &profile, "--costs", &other], 7, "another host"),
        (vec!["--profile", &profile, "--costs", &wrong], 2, "0 ns is no time"),
        (vec!["--profile", &profile, "--costs", &costs, "--to", "vm:nvme"], 7, "not of nvme"),
        (vec!["--profile", &none, "--costs", &costs, "--verify"], 2, "no command"),
        (
            vec!["--profile", &profile, "--costs", &costs, "--verify", "--with", "/nonexistent"],
            3,
            "/nonexistent",
        ),
        (vec!["--profile", &profile, "--method", "scaling"], 2, "--costs"),
    ] {
        let finished = run(&[&["predict"], &arguments[..]].concat());
        assert!(finished.code() == code && finished.stderr.contains(said), "{said}: {finished:?}");
    }
    let (_, refused) =
        self::profile(folder.path(), "x.json", &["--metric", "no group"], &["sh", "-c", SCRIPT]);
    assert!(refused.code() == 2 && refused.stderr.contains("one group"), "{refused:?}");
    let (_, silent) =
        self::profile(folder.path(), "x.json", &["--metric", "tps ([0-9]+)"], &["sh", "-c", SCRIPT]);
    assert!(silent.code() == 3 && silent.stderr.contains("rate 12.5"), "{silent:?}");
}

/// The think time is searched until the load does as much I/O as the application; then the same load runs in the VM.
#[test]
fn a_model_load_is_calibrated_here_and_run_in_a_guest() {
    let folder = folder();
    let write = |name: &str, rate: &str, more: &str| {
        let path = folder.path().join(name);
        let text = format!(
            "name = 'app'\nio_per_second = {rate}\nreads_per_second = {rate}\nwrites_per_second = 0\n\
             sizes = [{{size = '4k', share = 100}}]\nrandom_percent = 100\ncapacity = 1000\n{more}"
        );
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let profile = write("app.toml", "40", "workers = 2\n");
    let here = folder.path().display().to_string();
    let runs = folder.path().join("runs.toml").display().to_string();
    let place = ["--target-dir", &here, "--size", "16MiB", "--memory", "512MiB"];
    let load = ["predict", "--profile", &profile, "--run-model", "--model-out", &runs, "--json"];
    let found = run(&[&load[..], &place, &["--cpu-overhead", "10,30"]].concat());
    assert_eq!(found.code(), 0, "{found:?}");
    let found = found.json();
    assert_eq!(found["method"], "latency");
    let kept: toml::Table = toml::from_str(&fs::read_to_string(&runs).unwrap()).unwrap();
    let rate = |side: &str| kept[side]["io_per_second"].as_float().unwrap();
    // A busy machine may keep the search from coming nearer, but not from coming near.
    assert!((rate("reference") / 40.0 - 1.0).abs() < 0.2 && rate("subject") > 1.0, "{kept}");
    assert!(kept["think_ms"].as_float().unwrap() > 10.0, "{kept}");
    assert_eq!(kept["compute"]["overhead_percent"].as_float(), Some(20.0));
    // What was written is what was predicted from.
    let again = run(&["predict", "--profile", &profile, "--model", &runs, "--json"]).json();
    assert_eq!(again["capacity"], found["capacity"]);

    let alone = write("alone.toml", "40", "");
    let fast = write("fast.toml", "100000000", "workers = 1\n");
    for (profile, code, said) in [(&alone, 2, "how many workers"), (&fast, 5, "without any think time")] {
        let refused = run(&[&["predict", "--profile", profile, "--run-model"][..], &place].concat());
        assert!(refused.code() == code && refused.stderr.contains(said), "{said}: {refused:?}");
    }
}

fn which(name: &str) -> String {
    ["/bin", "/usr/bin"]
        .iter()
        .map(|folder| format!("{folder}/{name}"))
        .find(|path| Path::new(path).exists())
        .unwrap_or_else(|| panic!("{name} is not installed: apt install coreutils"))
}
