//! `virtbench study deviation --systems` with real guests on the fence's disks, small.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use support::{folder, run};

/// A light load, so that guests that hardly get a processor keep up with it.
const LOAD: &str = "load:size=4k,read=50,random=100,outstanding=8";

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn systems_are_compared_in_one_run_beside_what_the_simulator_says() {
    let folder = folder();
    let out = folder.path().join("run");
    let place = out.to_str().unwrap();
    let words = [
        "study",
        "deviation",
        "--systems",
        "none,VirtualFence",
        "--workload",
        LOAD,
        "--pattern",
        "10,20",
        "--size",
        "8MiB",
        "--memory",
        "128MiB",
        "--repetitions",
        "1",
        "--time",
        "3s",
        "--json",
        "--out",
        place,
    ];
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let systems = json["systems"].as_array().unwrap();
    let names: Vec<&str> = systems.iter().map(|system| system["system"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "VirtualFence"], "{json}");
    for system in systems {
        assert_eq!(system["vm"], "vm1", "the least share: {system}");
        for figures in ["per_second", "mean_ms", "simulated_mean_ms"] {
            let both = system[figures].as_array().unwrap();
            assert!(
                both.iter().all(|value| value.as_f64().is_some_and(|value| value > 0.0)),
                "{figures}: {system}"
            );
        }
    }
    assert_eq!(entries(&out), ["comparison.csv", "none", "virtualfence"]);
    let rows = fs::read_to_string(out.join("comparison.csv")).unwrap();
    // Each system: both machines alone, since their shares differ, and both together.
    assert_eq!(rows.lines().count(), 1 + 2 * 4, "{rows}");
    for system in ["none", "virtualfence"] {
        let names = entries(&out.join(system));
        assert!(names.iter().all(|name| !name.contains("img")), "{names:?}");
        let toml = fs::read_to_string(out.join(system).join("fence.toml")).unwrap();
        let socket =
            toml.lines().find_map(|line| line.strip_prefix("socket = \"")?.strip_suffix('"')).unwrap();
        assert!(!Path::new(socket).parent().unwrap().exists(), "{socket} is left");
    }
    let text = run(&["report", out.join("none").to_str().unwrap()]);
    assert_eq!(text.code(), 0, "{text:?}");
}

#[test]
fn systems_that_are_none_and_what_does_not_go_with_them_are_refused() {
    for (words, said) in [
        (&["--systems", "magic"][..], "magic is no system"),
        (&["--systems", "none", "--backing", "raw"], "cannot be used with"),
        (&["--backing", "fence,scheduler=magic"], "scheduler=magic"),
        (&["--backing", "fence,fast=none"], "fast=none"),
    ] {
        let done = run(&[&["study", "deviation", "--workload", LOAD], words].concat());
        assert_eq!(done.code(), 2, "{done:?}");
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
