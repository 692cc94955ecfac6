//! Commands that choose what to run next, on the null target: whether they end, and what they print.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn virtbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_virtbench")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = virtbench(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const SHORT: [&str; 6] = ["--target", "null", "--time", "30ms", "--ramp", "5ms"];

fn with<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command][..], &SHORT, more].concat()
}

#[test]
fn every_repetition_is_kept() {
    let report = json(&with("load", &["--repeat", "4", "--seed", "7", "--json"]));
    let repetitions = report["repetitions"].as_array().unwrap();
    assert_eq!(repetitions.len(), 4);
    assert_eq!(repetitions[3]["seed"], 10);
    let median = usize::try_from(report["median_repetition"].as_u64().unwrap()).unwrap();
    assert_eq!(repetitions[median]["iops"], report["total"]["iops"]);
    let interval = &report["iops_interval"];
    assert!(interval["low"].as_f64().unwrap() <= interval["mean"].as_f64().unwrap());
}

#[test]
fn a_single_measurement_prints_what_it_always_did() {
    let report = json(&with("load", &["--json"]));
    assert!(report.get("repetitions").is_none() && report.get("steady").is_none(), "{report}");
}

#[test]
fn repetitions_until_an_interval_are_bounded() {
    let report = json(&with("load", &["--repeat-until", "0.0001%", "--repeat-max", "5", "--json"]));
    assert_eq!(report["repetitions"].as_array().unwrap().len(), 5);
    assert_eq!(report["iops_interval"]["reached"], false);
}

#[test]
fn an_unsteady_target_is_measured_with_a_note() {
    let rule = ["--steady", "0.000001%/200ms", "--steady-limit", "400ms", "--json"];
    let report = json(&with("load", &rule));
    assert_eq!(report["steady"]["reached"], false);
    let notes = report["notes"].to_string();
    assert!(notes.contains("not steady after"), "{notes}");
}

#[test]
fn a_limit_within_the_window_is_refused() {
    let output = virtbench(&with("load", &["--steady", "5%/30s", "--steady-limit", "10s"]));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && message.contains("--steady-limit"), "{message}");
}

#[test]
fn a_surface_is_whole_although_few_points_were_measured() {
    let folder = tempfile::TempDir::new().unwrap();
    let grid = folder.path().join("grid.toml");
    fs::write(&grid, "blocks = ['4k', '8k']\nreads = [0, 25, 50, 75, 100]\nrandoms = [0, 50, 100]").unwrap();
    let table = folder.path().join("surface.csv");
    let more = ["--grid", grid.to_str().unwrap(), "--budget", "40%", "--error", "0.01%", "--json", "--csv"];
    let report = json(&[with("surface", &more), vec![table.to_str().unwrap()]].concat());
    assert_eq!(report["points"].as_array().unwrap().len(), 30);
    assert_eq!(report["measured"].as_array().unwrap().len(), 12);
    let marked = report["points"].as_array().unwrap();
    let marked = marked.iter().filter(|point| !point["measured_bytes_per_second"].is_null()).count();
    assert!((4..=12).contains(&marked), "{marked}");
    assert_eq!(fs::read_to_string(table).unwrap().lines().count(), 31);
}

#[test]
fn a_surface_of_too_many_points_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let grid = folder.path().join("grid.toml");
    let all = (0..=100).map(|percent| percent.to_string()).collect::<Vec<_>>().join(",");
    fs::write(&grid, format!("blocks = ['4k']\nreads = [{all}]\nrandoms = [{all}]")).unwrap();
    let output = virtbench(&with("surface", &["--grid", grid.to_str().unwrap()]));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && message.contains("10201"), "{message}");
}

#[test]
fn saturate_has_no_option_that_it_would_refuse() {
    let help = String::from_utf8(virtbench(&["saturate", "--help"]).stdout).unwrap();
    assert!(help.contains("--curve-repeat"), "{help}");
    for option in ["--repeat", "--steady", "--rate", "--verify-only", "--spec", "--export"] {
        let listed = help.lines().any(|line| line.trim_start().split(' ').next() == Some(option));
        assert!(!listed, "{option} is in the help:\n{help}");
        let output = virtbench(&with("saturate", &[option]));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && message.contains(option), "{message}");
    }
}
