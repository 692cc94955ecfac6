//! Figures that documents quote are those of the data beside them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use virtbench_model::{OverExperiments, Span, deviation};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A document without its line breaks and emphasis.
fn document(name: &str) -> String {
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    text.replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn evaluation() -> Value {
    let text = std::fs::read_to_string(root().join("docs/data/fence-evaluation.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn list<'a>(report: &'a Value, name: &str) -> &'a Vec<Value> {
    report[name].as_array().unwrap()
}

#[test]
fn the_documents_count_what_the_evaluation_counts() {
    let report = evaluation();
    let outside = list(&report, "rows").iter().filter_map(|row| row["outside_band"].as_f64());
    let outside: Vec<f64> = outside.collect();
    let (values, held) = (outside.len(), outside.iter().filter(|by| **by == 0.0).count());
    let verdict = |name: &str| list(&report, "findings").iter().filter(|one| one["verdict"] == name).count();
    let (shapes, undecided) = (list(&report, "findings").len(), verdict("undecided"));
    assert_eq!(report["tally"]["values"], values);
    assert_eq!(report["tally"]["values_held"], held);
    assert_eq!(report["tally"]["sentences_held"], verdict("held"));
    let values = format!("{held} of {values} published values");
    let sentences = format!("{} of {shapes} sentences", verdict("held"));
    for name in ["README.md", "SPECIFICATION.md", "docs/deviation.md"] {
        let text = document(name);
        assert!(text.contains(&values), "{name} does not say {values:?}");
        let others = text.matches("published values lie in their bands").count();
        assert_eq!(others, text.matches(&values).count(), "{name} counts otherwise as well");
        if name != "README.md" {
            assert!(text.contains(&sentences), "{name} does not say {sentences:?}");
            assert!(text.contains(&format!("{undecided} are undecided")), "{name}");
        }
    }
}

/// What is installed as root is named.
#[test]
fn the_document_of_set_up_names_every_package() {
    let script = std::fs::read_to_string(root().join("scripts/setup.sh")).unwrap();
    let named = std::fs::read_to_string(root().join("docs/set-up.md")).unwrap();
    let lists = script.lines().filter_map(|line| {
        let (before, list) = line.split_once("=(")?;
        let before = before.trim_end_matches('+');
        let is_list = before.ends_with("packages") || before.ends_with("appliances");
        is_list.then(|| list.split(')').next().unwrap_or_default())
    });
    let packages: Vec<&str> =
        lists.flat_map(str::split_whitespace).filter(|word| !word.starts_with('"')).collect();
    assert!(packages.len() > 50, "{packages:?}");
    for package in packages {
        assert!(named.contains(&format!("`{package}`")), "docs/set-up.md does not name {package}");
    }
}

/// The data are what the program gives today: one figure of one workload again.
#[test]
fn the_evaluation_is_that_of_this_program() {
    let output = Command::new(env!("CARGO_BIN_EXE_virtbench"))
        .args(["fence", "simulate", "--figure", "6", "--workload", "webserver", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = evaluation();
    let same = |row: &&Value| row["figure"] == "6" && row["workload"] == "webserver";
    let kept: Vec<&Value> = list(&report, "rows").iter().filter(same).collect();
    assert_eq!(kept, list(&again, "rows").iter().collect::<Vec<_>>(), "run `make evaluation`");
    assert_eq!(report["settings"], again["settings"]);
}

/// As documents write percent.
fn percent(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn cell(differs: &OverExperiments) -> String {
    let span = |span: Span| format!("{} to {}", percent(span.low), percent(span.high));
    let mean = percent(differs.estimate.mean);
    match differs.estimate.span() {
        Some(interval) => format!("{mean} ({}; {})", span(interval), span(differs.range)),
        None => mean,
    }
}

/// Rows of a comparison by machine, company and repetition: share, operations a second, mean milliseconds.
type Rows = BTreeMap<(String, bool, u32), [f64; 3]>;

fn rows(file: &str, system: &str) -> Rows {
    let path = root().join("docs/data").join(file);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let heads = reader.headers().unwrap().clone();
    let column = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let at =
        ["system", "vm", "beside_others", "repetition", "share_percent", "per_second", "mean_ms"].map(column);
    let records = reader.records().map(|record| record.unwrap()).filter(|record| &record[at[0]] == system);
    records
        .map(|record| {
            let figures = [4, 5, 6].map(|place: usize| record[at[place]].parse().unwrap());
            ((record[at[1]].to_owned(), &record[at[2]] == "true", record[at[3]].parse().unwrap()), figures)
        })
        .collect()
}

#[test]
fn the_documents_deviations_are_those_of_the_data() {
    let text = std::fs::read_to_string(root().join("docs/deviation.md")).unwrap();
    for (file, system) in [
        ("deviation.csv", "none"),
        ("deviation.csv", "VirtualFence"),
        ("deviation-slots.csv", "VirtualFence:30ms"),
    ] {
        let rows = rows(file, system);
        for vm in ["vm1", "vm2", "vm3", "vm4"] {
            let beside: Vec<_> = rows.iter().filter(|((one, beside, _), _)| one == vm && *beside).collect();
            let share = beside.first().unwrap().1[0];
            // Where it did not run alone itself, one with the same share stands for it.
            let alone = |repetition: u32| {
                let own = rows.get(&(vm.to_owned(), false, repetition));
                let alike = |((_, beside, of), figures): &(&(String, bool, u32), &[f64; 3])| {
                    !beside && *of == repetition && figures[0] == share
                };
                own.or_else(|| rows.iter().find(alike).map(|(_, figures)| figures)).copied().unwrap()
            };
            let differs = |figure: usize| {
                let pairs =
                    beside.iter().map(|((_, _, repetition), got)| (alone(*repetition)[figure], got[figure]));
                cell(&deviation(pairs, 0).unwrap())
            };
            let line = format!("| {system} | {vm} | {share} | {} | {} |", differs(1), differs(2));
            assert!(text.contains(&line), "{file}: docs/deviation.md lacks\n{line}");
        }
    }
}
