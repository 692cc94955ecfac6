//! `virtbench fence simulate` as a user runs it.

use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_virtbench"))
        .args(["fence", "simulate"])
        .args(arguments)
        .output()
        .unwrap()
}

/// Short runs of one figure.
const QUICK: [&str; 6] = ["--figure", "1", "--workload", "webserver", "--duration", "5s"];

#[test]
fn a_seed_gives_the_same_bytes_with_any_number_of_threads() {
    let run = |jobs: &str, seed: &str| {
        let output = simulate(&[&QUICK[..], &["--json", "--jobs", jobs, "--seed", seed]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let one = run("1", "3");
    assert_eq!(one, run("2", "3"));
    assert_ne!(one, run("2", "4"));
    let report: serde_json::Value = serde_json::from_slice(&one).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let (measured, range) = (&row["measured"], &row["range"]);
        assert!(measured["low"].as_f64() <= measured["value"].as_f64(), "{row}");
        assert!(measured["low"].as_f64().unwrap() >= 0.0, "a deviation below zero: {row}");
        assert!(range["low"].as_f64() <= measured["value"].as_f64(), "{row}");
        assert!(range["high"].as_f64() >= measured["value"].as_f64(), "{row}");
    }
    assert!(rows.iter().any(|row| row["published"]["quote"].is_string() && row["outside_band"].is_number()));
    let outside = rows.iter().filter(|row| row["outside_band"].as_f64().is_some_and(|by| by != 0.0)).count();
    let misses = report["misses"].as_array().unwrap();
    assert!(outside > 0 && misses.len() == outside, "{misses:?}");
    let values = rows.iter().filter(|row| row["published"].is_object()).count();
    assert_eq!(report["tally"]["values"], values);
    assert_eq!(report["tally"]["values_held"], values - outside);
    for miss in misses {
        let (why, experiments) = (miss["why"].as_str().unwrap(), miss["experiments"].as_str().unwrap());
        assert!(why.len() > 40 && experiments.contains("another seed: "), "{miss}");
    }
}

#[test]
fn a_page_is_written_and_the_table_has_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("fence.html");
    let output = simulate(&[&QUICK[..], &["--html", page.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Figure 1") && text.contains("held"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Figure 1."));
}

/// The example of the help.
#[test]
fn seek_times_are_three_numbers_after_one_option() {
    let settings = |seek: &str| {
        let output = simulate(&[&QUICK[..], &["--json", "--replications", "1", "--seek", seek]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["settings"]["hdd"]["seek"].clone()
    };
    assert_eq!(settings("1,15,6"), serde_json::json!({"settle_ms": 1.0, "root_ms": 15.0, "linear_ms": 6.0}));
    assert_eq!(settings("0.5, 4, 2")["linear_ms"], 2.0);
}

#[test]
fn worlds_that_cannot_be_are_exit_code_2_with_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("fence.toml");
    std::fs::write(&config, "slots = 0\n").unwrap();
    let config = config.to_str().unwrap();
    let overlapping = folder.path().join("overlapping.toml");
    std::fs::write(&overlapping, "stride_bytes = 1_000_000\n").unwrap();
    let overlapping = overlapping.to_str().unwrap();
    for (arguments, named) in [
        (vec!["--rpm", "0"], "--rpm"),
        (vec!["--seek", "1,15"], "--seek"),
        (vec!["--seek", "1,15,far"], "--seek"),
        (vec!["--seek", "1,-15,6"], "seek.root_ms"),
        (vec!["--figure", "9"], "--figure"),
        (vec!["--workload", "x"], "--workload"),
        (vec!["--ssd", "fast"], "--ssd"),
        (vec!["--replications", "0"], "--replications"),
        (vec!["--figure", "5", "--workload", "webserver"], "figure"),
        (vec!["--config", config], "slots"),
        (vec!["--config", overlapping, "--figure", "1", "--workload", "webserver"], "disks 0 and 1 overlap"),
    ] {
        let output = simulate(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(named), "{arguments:?}: {error}");
    }
}

#[test]
fn recorded_machines_are_replayed_on_every_way_of_storing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, per_second: u64| {
        let path = folder.path().join(name);
        let ops = (0..10 * per_second)
            .map(|n| format!("{},{},4096,read\n", n * 1_000_000 / per_second, n * 7919 % 65536 * 4096));
        std::fs::write(&path, "time_us,offset,size,operation\n".to_owned() + &ops.collect::<String>())
            .unwrap();
        path.display().to_string()
    };
    let (light, heavy) = (write("light.csv", 4), write("heavy.csv", 80));
    let page = folder.path().join("page.html");
    let two = ["--trace", &light, "--trace", &heavy, "--replications", "2", "--json"];
    let output = simulate(&[&two[..], &["--html", page.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let deviation = |system: &str| {
        let rows = report["rows"].as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["system"] == system && row["trace"] == light.as_str());
        rows.next().unwrap()["response_deviation"]["value"].as_f64().unwrap()
    };
    for row in report["rows"].as_array().unwrap() {
        for at in 0..2 {
            let [mean, p99] =
                ["response_ms", "p99_ms"].map(|figure| row[figure][at]["value"].as_f64().unwrap());
            // A fast device's requests may all take the same time; those of a hard disk do not.
            assert!(p99 >= mean && (p99 > 1.1 * mean || row["system"] != "HDD"), "{row}");
        }
    }
    assert!(deviation("HDD") > 2.0 * deviation("SSD+NWC"), "{report}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("heavy.csv"));

    // A trace out of order is sorted, which is said; what is no trace is refused with its line.
    let shuffled = folder.path().join("shuffled.csv");
    std::fs::write(&shuffled, "time_us,offset,size,operation\n9,0,4096,read\n3,4096,4096,write\n").unwrap();
    let output = simulate(&["--trace", shuffled.to_str().unwrap(), "--replications", "1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("line 3 is earlier"), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let head = printed.lines().find(|line| line.trim_start().starts_with("system")).unwrap_or_default();
    let heads: Vec<&str> = head.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert!(heads.ends_with(&["alone", "together", "p99 alone", "p99 together"]), "{printed}");
    std::fs::write(&shuffled, "time_us,offset,size,operation\n9,0,4096,juggle\n").unwrap();
    for (arguments, named) in [
        (vec!["--trace", shuffled.to_str().unwrap()], "line 2"),
        (vec!["--trace", &light, "--pace", "max"], "a speed"),
        (vec!["--trace", &light, "--figure", "1"], "--figure"),
        (vec!["--pace", "2x"], "--trace"),
    ] {
        let output = simulate(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(named), "{arguments:?}: {error}");
    }
}

fn plan(arguments: &[&str]) -> Output {
    let common = ["fence", "plan", "--workload", "webserver", "--load", "40,40", "--duration", "8s"];
    Command::new(env!("CARGO_BIN_EXE_virtbench")).args(common).args(arguments).output().unwrap()
}

#[test]
fn a_plan_meets_targets_or_says_that_none_does() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("plan.html");
    let run = |deviation: &str, response: &str| {
        let targets =
            ["--deviation", deviation, "--response", response, "--budget", "3", "--replications", "3"];
        let output = plan(&[&targets[..], &["--json", "--html", page.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let easy = run("1000", "1000");
    assert_eq!(easy["met"], true, "{easy}");
    assert!(easy["plans"][0]["shortfall"].as_f64().unwrap() <= 1.0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("Pareto front"));
    let hard = run("0.001", "0.001");
    assert_eq!(hard["met"], false);
    assert!(hard["verdict"].as_str().unwrap().contains("Nearest"), "{hard}");
    assert_eq!(hard["plans"].as_array().unwrap().len(), 3);
    for (arguments, named) in [
        (["--deviation", "0", "--response", "5"], "--deviation"),
        (["--deviation", "5", "--response", "-1"], "--response"),
    ] {
        let output = plan(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{arguments:?}");
    }
}

#[test]
fn a_plan_that_is_printed_as_a_file_is_simulated_again_with_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    let path = file.to_str().unwrap();
    let printed =
        plan(&["--deviation", "20", "--response", "100", "--budget", "1", "--replications", "3", "--toml"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    std::fs::write(&file, &printed.stdout).unwrap();
    let again = simulate(&["--plan", path, "--json"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    let verdict = format!("# {}\n", again["verdict"].as_str().unwrap());
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.starts_with(&verdict), "{verdict}{printed}");
    std::fs::write(&file, printed.replace("hit_percent = ", "hit_percent = 1")).unwrap();
    let refused = simulate(&["--plan", path]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && error.contains("hit_percent"), "{error}");
}
