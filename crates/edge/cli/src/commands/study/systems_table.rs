//! The comparison of systems: a row for each machine, a line for each system, as CSV, Markdown, JSON and text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use virtbench_model::deviation;
use virtbench_record::{
    JobOutcome, MemberRecord, Ranged, SystemFate, SystemNumbers, SystemVmNumbers, SystemsSummary,
};
use virtbench_study::{Simulated, System};
use virtbench_units::{LatencySummary, rounded};

use crate::commands::value::Value;
use crate::exit::{Failure, Kind, Outcome};

/// One machine under one system, alone or together with the others. Milliseconds, and operations a second.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    system: String,
    vm: String,
    share_percent: Option<f64>,
    beside_others: bool,
    repetition: u32,
    per_second: Option<f64>,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    simulated_per_second: Option<f64>,
    simulated_mean_ms: Option<f64>,
    simulated_p50_ms: Option<f64>,
    simulated_p90_ms: Option<f64>,
    simulated_p99_ms: Option<f64>,
}

impl Row {
    /// Of what was measured, and what the simulator says.
    pub fn new(
        system: System,
        share_percent: Option<f64>,
        beside_others: bool,
        repetition: u32,
        member: &MemberRecord,
        twin: Option<&Simulated>,
    ) -> Self {
        let outcome = member.usable().map(|measured| &measured.outcome);
        let response = outcome.and_then(|outcome| match outcome {
            JobOutcome::Load(load) => load.total.latency_ns,
            JobOutcome::Workload(workload) => workload.latency_ns,
        });
        let ms = |of: Option<LatencySummary>, figure: fn(&LatencySummary) -> f64| {
            of.map(|of| rounded(figure(&of) / 1e6))
        };
        let in_twin = twin.and_then(|twin| twin.response_ns);
        Self {
            system: system.to_string(),
            vm: member.vm.clone(),
            share_percent,
            beside_others,
            repetition,
            per_second: outcome.and_then(JobOutcome::throughput).map(rounded),
            mean_ms: ms(response, |of| of.mean),
            p50_ms: ms(response, |of| of.p50 as f64),
            p90_ms: ms(response, |of| of.p90 as f64),
            p99_ms: ms(response, |of| of.p99 as f64),
            simulated_per_second: twin.map(|twin| rounded(twin.per_second)),
            simulated_mean_ms: ms(in_twin, |of| of.mean),
            simulated_p50_ms: ms(in_twin, |of| of.p50 as f64),
            simulated_p90_ms: ms(in_twin, |of| of.p90 as f64),
            simulated_p99_ms: ms(in_twin, |of| of.p99 as f64),
        }
    }
}

/// A system with what came of it.
#[derive(Debug)]
pub struct Tried {
    /// The way of sharing that was tried.
    pub system: System,
    /// What came of it.
    pub fate: SystemFate,
    /// Its machines' figures.
    pub rows: Vec<Row>,
}

/// A figure by repetition.
type ByRepetition = BTreeMap<u32, f64>;

/// The figures of one VM.
fn numbers_of(vm: &str, rows: &[Row]) -> SystemVmNumbers {
    let of = |figure: fn(&Row) -> Option<f64>| -> [ByRepetition; 2] {
        [false, true].map(|beside| {
            let own = rows.iter().filter(|row| row.vm == vm && row.beside_others == beside);
            own.filter_map(|row| Some((row.repetition, figure(row)?))).collect()
        })
    };
    let mean = |values: &ByRepetition| {
        (!values.is_empty()).then(|| values.values().sum::<f64>() / values.len() as f64)
    };
    let both = |figure: fn(&Row) -> Option<f64>| of(figure).each_ref().map(mean);
    let differs = |figure: fn(&Row) -> Option<f64>| {
        let [alone, beside] = of(figure);
        let pairs = alone.iter().filter_map(|(repetition, alone)| Some((*alone, *beside.get(repetition)?)));
        deviation(pairs, 0).map(|over| Ranged::from(Value::from(over)))
    };
    SystemVmNumbers {
        vm: vm.to_owned(),
        share_percent: rows.iter().find(|row| row.vm == vm).and_then(|row| row.share_percent),
        per_second: both(|row| row.per_second),
        throughput_deviation: differs(|row| row.per_second),
        mean_ms: both(|row| row.mean_ms),
        response_deviation: differs(|row| row.mean_ms),
        p99_ms: both(|row| row.p99_ms),
        simulated_per_second: both(|row| row.simulated_per_second),
        simulated_throughput_deviation: differs(|row| row.simulated_per_second),
        simulated_mean_ms: both(|row| row.simulated_mean_ms),
        simulated_response_deviation: differs(|row| row.simulated_mean_ms),
        simulated_p99_ms: both(|row| row.simulated_p99_ms),
    }
}

/// In the order of [`COLUMNS`].
fn cells(vm: &SystemVmNumbers) -> [String; 12] {
    let differs = |ranged: Option<Ranged>| {
        ranged.map_or_else(|| "-".to_owned(), |ranged| Value::from(ranged).percent())
    };
    let ([a, b], [c, d]) = (vm.per_second.map(number), vm.mean_ms.map(number));
    let ([e, f], [i, j]) = (vm.simulated_mean_ms.map(number), vm.p99_ms.map(number));
    let share = vm.share_percent.map_or_else(|| "-".to_owned(), |share| format!("{share}"));
    let [g, h] = [vm.throughput_deviation, vm.response_deviation].map(differs);
    [share, a, b, g, c, d, h, i, j, e, f, differs(vm.simulated_response_deviation)]
}

fn compared(tried: &Tried) -> SystemNumbers {
    let vms: BTreeSet<&str> = tried.rows.iter().map(|row| row.vm.as_str()).collect();
    SystemNumbers {
        system: tried.system.to_string(),
        summary: tried.system.summary.to_owned(),
        fate: tried.fate.clone(),
        vms: vms.into_iter().map(|vm| numbers_of(vm, &tried.rows)).collect(),
    }
}

/// Why there is nothing, or not all.
fn why(of: &SystemNumbers) -> Option<String> {
    match &of.fate {
        SystemFate::Measured => None,
        SystemFate::Unavailable(why) => Some(format!("unavailable: {why}")),
        SystemFate::Failed(why) => Some(format!("failed: {why}")),
    }
}

const COLUMNS: [&str; 12] = [
    "share %",
    "alone /s",
    "beside /s",
    "differs %",
    "alone ms",
    "beside ms",
    "differs %",
    "alone p99 ms",
    "beside p99 ms",
    "sim. alone ms",
    "sim. beside ms",
    "differs %",
];

/// What stands behind `differs %`.
const DIFFERS: &str = "Differs: the mean over repetitions of |alone - beside| / alone; in brackets its 95 % interval and the \
                       least and greatest repetition.";

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// A table to be pasted into a document.
fn markdown(compared: &[SystemNumbers]) -> String {
    let mut text =
        format!("| system | VM | {} |\n|---|---{}|\n", COLUMNS.join(" | "), "|---:".repeat(COLUMNS.len()));
    for one in compared {
        for vm in &one.vms {
            let _ = writeln!(text, "| {} | {} | {} |", one.system, vm.vm, cells(vm).join(" | "));
        }
    }
    let summaries = compared.iter().map(|one| {
        let why = why(one).map_or_else(String::new, |why| format!("; {why}"));
        format!("- {}: {}{why}\n", one.system, one.summary)
    });
    let _ = write!(text, "\n{DIFFERS}\n\n{}", summaries.collect::<String>());
    text
}

/// Writes `comparison.csv` with every machine, and `table.md` and `table.json` with every system, into `folder`.
pub fn save(folder: &Path, tried: &[Tried]) -> Outcome {
    let compared: Vec<SystemNumbers> = tried.iter().map(compared).collect();
    let failed = |error: anyhow::Error| Failure::new(Kind::Folder, error);
    let mut csv =
        csv::Writer::from_path(folder.join("comparison.csv")).map_err(|error| failed(error.into()))?;
    for row in tried.iter().flat_map(|tried| &tried.rows) {
        csv.serialize(row).map_err(|error| failed(error.into()))?;
    }
    csv.flush()?;
    fs::write(folder.join("table.md"), markdown(&compared)).map_err(|error| failed(error.into()))?;
    let json = virtbench_formats::json::pretty_text(&compared)? + "\n";
    fs::write(folder.join("table.json"), json).map_err(|error| failed(error.into()))
}

/// A line for each VM of each way of sharing.
fn table(out: &mut impl io::Write, compared: &[SystemNumbers]) -> io::Result<()> {
    writeln!(
        out,
        "{:>17} {:>4} {:>6} {:>6} {:>7} {:>7} {:>20} {:>6}",
        "system", "VM", "/s, %", "alone", "beside", "p99", "ms, differs % (95 %)", "sim. %"
    )?;
    for one in compared {
        if let Some(why) = why(one) {
            writeln!(out, "{:>17} {why}", one.system)?;
        }
        for vm in &one.vms {
            let mean = |value: Option<Ranged>| number(value.map(|value| value.mean));
            let [alone, beside] = vm.mean_ms.map(number);
            let interval = |ranged: Ranged| Value { least: None, greatest: None, ..ranged.into() }.percent();
            writeln!(
                out,
                "{:>17} {:>4} {:>6} {alone:>6} {beside:>7} {:>7} {:>20} {:>6}",
                one.system,
                vm.vm,
                mean(vm.throughput_deviation),
                number(vm.p99_ms[1]),
                vm.response_deviation.map_or_else(|| "-".to_owned(), interval),
                mean(vm.simulated_response_deviation)
            )?;
        }
    }
    writeln!(out, "\n{DIFFERS} alone, beside: mean ms; p99: ms beside the others.")
}

/// Says what came of all of them.
pub fn show(tried: &[Tried], json: bool, folder: &Path) -> Outcome {
    let compared: Vec<SystemNumbers> = tried.iter().map(compared).collect();
    let mut out = std::io::stdout().lock();
    if json {
        virtbench_formats::json::write(
            &mut out,
            &SystemsSummary { folder: folder.display().to_string(), systems: compared },
        )?;
        writeln!(out)?;
        return Ok(());
    }
    table(&mut out, &compared)?;
    writeln!(out, "\nall VMs: {}", folder.join("comparison.csv").display())?;
    writeln!(out, "for a document: {}", folder.join("table.md").display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(vm: &str, repetition: u32, beside_others: bool, mean_ms: f64) -> Row {
        Row {
            system: "none".into(),
            vm: vm.into(),
            share_percent: Some(8.0),
            beside_others,
            repetition,
            per_second: Some(10.0),
            mean_ms: Some(mean_ms),
            p50_ms: None,
            p90_ms: None,
            p99_ms: Some(2.0 * mean_ms),
            simulated_per_second: Some(10.0),
            simulated_mean_ms: None,
            simulated_p50_ms: None,
            simulated_p90_ms: None,
            simulated_p99_ms: None,
        }
    }

    /// Slower by half in one repetition, faster by half in the other: that is no deviation of nothing.
    #[test]
    fn every_machine_deviates_by_the_mean_of_its_repetitions() {
        let rows = [
            row("vm1", 0, false, 10.0),
            row("vm1", 0, true, 15.0),
            row("vm1", 1, false, 20.0),
            row("vm1", 1, true, 10.0),
            row("vm2", 1, false, 40.0),
            row("vm2", 0, true, 80.0),
            row("vm2", 1, true, 50.0),
        ];
        let tried =
            Tried { system: System::find("none").unwrap(), fate: SystemFate::Measured, rows: rows.into() };
        let compared = compared(&tried);
        let [one, two] = compared.vms.as_slice() else { panic!("{compared:?}") };
        let differs = one.response_deviation.unwrap();
        assert_eq!((differs.mean, differs.least, differs.greatest), (50.0, Some(50.0), Some(50.0)));
        let differs = two.response_deviation.unwrap();
        assert_eq!((differs.mean, differs.low), (25.0, None), "of the one repetition with both");
        assert_eq!(one.throughput_deviation.unwrap().mean, 0.0);
    }

    #[test]
    fn a_table_for_a_document_has_a_line_for_each_and_says_what_lacks() {
        let [none, blkio] = ["none", "blkio"].map(|name| System::find(name).unwrap());
        let rows = vec![row("vm1", 0, false, 10.0), row("vm1", 0, true, 30.0), row("vm2", 0, true, 35.0)];
        let lacking = SystemFate::Unavailable("no root".into());
        let tried = [
            Tried { system: none, fate: SystemFate::Measured, rows },
            Tried { system: blkio, fate: lacking, rows: Vec::new() },
        ];
        let compared: Vec<SystemNumbers> = tried.iter().map(compared).collect();
        let text = markdown(&compared);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.matches('|').count();
        assert!(lines[..4].iter().all(|line| cells(line) == 15), "{text}");
        assert_eq!(
            lines[2],
            "| none | vm1 | 8 | 10.0 | 10.0 | 0.0 | 10.0 | 30.0 | 200 | 20.0 | 60.0 | - | - | - |"
        );
        assert!(lines[3].starts_with("| none | vm2 | 8 | - | 10.0 | - | - | 35.0 | - |"), "{text}");
        assert!(lines.last().unwrap().ends_with("; unavailable: no root"), "{text}");
        let mut printed = Vec::new();
        table(&mut printed, &compared).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        let column = |at: usize| -> Vec<&str> {
            printed.lines().take(3).map(|line| line.split_whitespace().nth(at).unwrap()).collect()
        };
        // The head has a space in "/s, %".
        assert_eq!(
            printed.lines().next().and_then(|head| head.split_whitespace().nth(6)),
            Some("p99"),
            "{printed}"
        );
        assert_eq!(column(5)[1..], ["60.0", "70.0"], "the 99th percentile beside the others\n{printed}");
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &tried).unwrap_or_else(|error| panic!("{error}"));
        let json = fs::read_to_string(folder.path().join("table.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["status"], &json[1]["why"]), (&"measured".into(), &"no root".into()));
        assert_eq!(json[0]["vms"][0]["response_deviation"]["mean"], 200.0);
        // As its schema has it.
        let back: Vec<SystemNumbers> = serde_json::from_value(json).unwrap();
        assert_eq!(back, compared);
    }
}
