//! The comparison of systems: a row for each machine, a line for each system, as CSV, Markdown, JSON and text.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use virtbench_record::{JobOutcome, MemberRecord};
use virtbench_study::{Simulated, System};
use virtbench_units::LatencySummary;

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
        let ms =
            |of: Option<LatencySummary>, figure: fn(&LatencySummary) -> f64| of.map(|of| figure(&of) / 1e6);
        let in_twin = twin.and_then(|twin| twin.response_ns);
        Self {
            system: system.to_string(),
            vm: member.vm.clone(),
            share_percent,
            beside_others,
            repetition,
            per_second: outcome.and_then(JobOutcome::throughput),
            mean_ms: ms(response, |of| of.mean),
            p50_ms: ms(response, |of| of.p50 as f64),
            p90_ms: ms(response, |of| of.p90 as f64),
            p99_ms: ms(response, |of| of.p99 as f64),
            simulated_per_second: twin.map(|twin| twin.per_second),
            simulated_mean_ms: ms(in_twin, |of| of.mean),
            simulated_p50_ms: ms(in_twin, |of| of.p50 as f64),
            simulated_p90_ms: ms(in_twin, |of| of.p90 as f64),
            simulated_p99_ms: ms(in_twin, |of| of.p99 as f64),
        }
    }
}

/// What came of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "why", rename_all = "snake_case")]
pub enum Fate {
    /// All its sets are there.
    Measured,
    /// It cannot be had on this host.
    Unavailable(String),
    /// Something went wrong on the way.
    Failed(String),
}

/// A system with what came of it.
#[derive(Debug)]
pub struct Tried {
    /// Which.
    pub system: System,
    /// What came of it.
    pub fate: Fate,
    /// Its machines' figures.
    pub rows: Vec<Row>,
}

/// What the machine with the least load gets under a system.
#[derive(Debug, Serialize)]
struct Compared {
    system: String,
    summary: &'static str,
    #[serde(flatten)]
    fate: Fate,
    vm: Option<String>,
    /// Alone and beside the others, and by how many percent they differ.
    per_second: [Option<f64>; 2],
    throughput_deviation_percent: Option<f64>,
    mean_ms: [Option<f64>; 2],
    response_deviation_percent: Option<f64>,
    simulated_per_second: [Option<f64>; 2],
    simulated_throughput_deviation_percent: Option<f64>,
    simulated_mean_ms: [Option<f64>; 2],
    simulated_response_deviation_percent: Option<f64>,
}

impl Compared {
    fn new(tried: &Tried) -> Self {
        let shares = tried.rows.iter().filter_map(|row| Some((row.share_percent?, &row.vm)));
        let vm = shares.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, vm)| vm.clone());
        let both = |figure: fn(&Row) -> Option<f64>| {
            [false, true].map(|beside| {
                let is_one = |row: &&Row| Some(&row.vm) == vm.as_ref() && row.beside_others == beside;
                let values: Vec<f64> = tried.rows.iter().filter(is_one).filter_map(figure).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            })
        };
        let delta =
            |[alone, beside]: [Option<f64>; 2]| virtbench_model::together::deviation_percent(alone?, beside?);
        let (per_second, mean_ms) = (both(|row| row.per_second), both(|row| row.mean_ms));
        let simulated_per_second = both(|row| row.simulated_per_second);
        let simulated_mean_ms = both(|row| row.simulated_mean_ms);
        Self {
            system: tried.system.to_string(),
            summary: tried.system.summary,
            fate: tried.fate.clone(),
            per_second,
            throughput_deviation_percent: delta(per_second),
            mean_ms,
            response_deviation_percent: delta(mean_ms),
            simulated_per_second,
            simulated_throughput_deviation_percent: delta(simulated_per_second),
            simulated_mean_ms,
            simulated_response_deviation_percent: delta(simulated_mean_ms),
            vm,
        }
    }

    /// Its figures in the order of the table's columns.
    fn figures(&self) -> [Option<f64>; 12] {
        let ([a, b], [c, d]) = (self.per_second, self.mean_ms);
        let ([e, f], [g, h]) = (self.simulated_per_second, self.simulated_mean_ms);
        let [i, j] = [self.throughput_deviation_percent, self.response_deviation_percent];
        let [k, l] = [self.simulated_throughput_deviation_percent, self.simulated_response_deviation_percent];
        [a, b, i, c, d, j, e, f, k, g, h, l]
    }

    /// Why there is nothing, or not all.
    fn why(&self) -> Option<String> {
        match &self.fate {
            Fate::Measured => None,
            Fate::Unavailable(why) => Some(format!("unavailable: {why}")),
            Fate::Failed(why) => Some(format!("failed: {why}")),
        }
    }
}

const COLUMNS: [&str; 12] = [
    "alone /s",
    "beside /s",
    "differs %",
    "alone ms",
    "beside ms",
    "differs %",
    "sim. alone /s",
    "sim. beside /s",
    "differs %",
    "sim. alone ms",
    "sim. beside ms",
    "differs %",
];

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// A table to be pasted into a document.
fn markdown(compared: &[Compared]) -> String {
    let mut text = format!("| system | {} |\n|---{}|\n", COLUMNS.join(" | "), "|---:".repeat(COLUMNS.len()));
    for one in compared {
        let cells = one.figures().map(number).join(" | ");
        let _ = writeln!(text, "| {}, {} | {cells} |", one.system, one.summary);
    }
    let lacking: Vec<String> =
        compared.iter().filter_map(|one| Some(format!("- {}: {}\n", one.system, one.why()?))).collect();
    if !lacking.is_empty() {
        let _ = write!(text, "\n{}", lacking.concat());
    }
    text
}

/// Writes `comparison.csv` with every machine, and `table.md` and `table.json` with every system, into `folder`.
pub fn save(folder: &Path, tried: &[Tried]) -> Outcome {
    let compared: Vec<Compared> = tried.iter().map(Compared::new).collect();
    let failed = |error: anyhow::Error| Failure::new(Kind::Folder, error);
    let mut csv =
        csv::Writer::from_path(folder.join("comparison.csv")).map_err(|error| failed(error.into()))?;
    for row in tried.iter().flat_map(|tried| &tried.rows) {
        csv.serialize(row).map_err(|error| failed(error.into()))?;
    }
    csv.flush()?;
    fs::write(folder.join("table.md"), markdown(&compared)).map_err(|error| failed(error.into()))?;
    let json = serde_json::to_string_pretty(&compared)? + "\n";
    fs::write(folder.join("table.json"), json).map_err(|error| failed(error.into()))
}

/// Says what came of all of them.
pub fn show(tried: &[Tried], json: bool, folder: &Path) -> Outcome {
    let compared: Vec<Compared> = tried.iter().map(Compared::new).collect();
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &serde_json::json!({ "folder": folder, "systems": compared }))?;
        writeln!(out)?;
        return Ok(());
    }
    writeln!(
        out,
        "The VM with the least load, alone and beside the others; in the simulator, the same load."
    )?;
    let heads = ["alone /s", "beside /s", "delta %", "alone ms", "beside ms", "delta %"];
    let heads = heads.into_iter().chain(["sim. ms", "sim. ms", "delta %"]);
    writeln!(
        out,
        "{:>20} {}",
        "system",
        heads.map(|head| format!("{head:>9}")).collect::<Vec<_>>().join(" ")
    )?;
    for one in &compared {
        let [a, b, c, d, e, f, _, _, _, g, h, i] = one.figures().map(number);
        match one.why() {
            Some(why) if one.vm.is_none() => writeln!(out, "{:>20} {why}", one.system)?,
            _ => {
                let cells = [a, b, c, d, e, f, g, h, i].map(|cell| format!("{cell:>9}")).join(" ");
                writeln!(out, "{:>20} {cells}", one.system)?;
            }
        }
    }
    writeln!(out, "\nall VMs: {}", folder.join("comparison.csv").display())?;
    writeln!(out, "for a document: {}", folder.join("table.md").display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(beside_others: bool, mean_ms: f64) -> Row {
        Row {
            system: "none".into(),
            vm: "vm1".into(),
            share_percent: Some(8.0),
            beside_others,
            repetition: 0,
            per_second: Some(10.0),
            mean_ms: Some(mean_ms),
            p50_ms: None,
            p90_ms: None,
            p99_ms: None,
            simulated_per_second: Some(10.0),
            simulated_mean_ms: None,
            simulated_p50_ms: None,
            simulated_p90_ms: None,
            simulated_p99_ms: None,
        }
    }

    #[test]
    fn a_table_for_a_document_has_a_line_for_each_and_says_what_lacks() {
        let [none, blkio] = ["none", "blkio"].map(|name| System::find(name).unwrap());
        let rows = vec![row(false, 10.0), row(true, 25.0), row(true, 35.0)];
        let lacking = Fate::Unavailable("no root".into());
        let tried = [
            Tried { system: none, fate: Fate::Measured, rows },
            Tried { system: blkio, fate: lacking, rows: Vec::new() },
        ];
        let compared: Vec<Compared> = tried.iter().map(Compared::new).collect();
        let text = markdown(&compared);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.matches('|').count();
        assert!(lines[..4].iter().all(|line| cells(line) == 14), "{text}");
        let figures = "| 10.0 | 10.0 | 0.0 | 10.0 | 30.0 | 200.0 | 10.0 | 10.0 | 0.0 | - | - | - |";
        assert!(lines[2].starts_with("| none, no fence") && lines[2].ends_with(figures), "{text}");
        assert_eq!(lines.last(), Some(&"- blkio: unavailable: no root"));
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &tried).unwrap_or_else(|error| panic!("{error}"));
        let json = fs::read_to_string(folder.path().join("table.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["status"], &json[1]["why"]), (&"measured".into(), &"no root".into()));
        assert_eq!(json[0]["response_deviation_percent"], 200.0);
    }
}
