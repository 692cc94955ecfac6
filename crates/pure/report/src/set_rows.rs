//! Machines that ran together as CSV, and ways of sharing beside each other.

use std::fmt::Write as _;

use csv::Writer;
use virtbench_record::{
    JobOutcome, MemberRecord, MemberStatus, Ranged, SetRecord, SystemFate, SystemNumbers, SystemRow,
    SystemVmNumbers,
};

use crate::rows::{CsvError, figure as cell, text};

const HEADER: &[&str] = &[
    "set",
    "repetition",
    "attempts",
    "started_unix_ns",
    "vm",
    "status",
    "figure",
    "unit",
    "mean",
    "stddev",
    "samples",
    "throughput_per_second",
    "response_mean_ns",
    "operations",
    "bytes",
    "errors",
    "elapsed_ns",
    "host_elapsed_ns",
    "steal_ns",
    "clock_drift_ppm",
    "host_cpu_percent",
];

/// More of machines that live in environments.
const HOME_HEADER: &[&str] = &[
    "late_ns",
    "offset_uncertainty_ns",
    "clock_jump_ns",
    "start_uncertainty_ns",
    "start_needed_ns",
    "machine_cpu_percent",
    "machine_steal_percent",
    "machine_others_percent",
];

/// A row for each figure of each machine, in the order of `records`; one that failed has a row too. A
/// cell without a value is empty, never zero. Units stand at the end of each column's name. Machines that live in
/// environments have more columns.
///
/// # Errors
/// The writer failed, which only an exhausted memory can cause.
pub fn sets_csv(records: &[SetRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let in_environments = records.iter().flat_map(|record| &record.members).any(is_in_environment);
    let more = if in_environments { HOME_HEADER } else { &[] };
    writer.write_record(HEADER.iter().chain(more)).map_err(CsvError::from)?;
    for record in records {
        for member in &record.members {
            for figure in figures(member) {
                let mut row = row(record, member, figure);
                if in_environments {
                    row.extend(home_cells(record, member));
                }
                writer.write_record(row).map_err(CsvError::from)?;
            }
        }
    }
    text(writer)
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Name, unit, mean, standard deviation and number of samples of each figure; one empty where there is none.
fn figures(member: &MemberRecord) -> Vec<[String; 5]> {
    let figures: Vec<[String; 5]> = match member.measured().map(|measured| &measured.outcome) {
        Some(JobOutcome::Workload(workload)) => workload
            .metrics
            .iter()
            .map(|metric| {
                let (name, unit) = (metric.name.clone(), metric.unit.clone());
                [
                    name,
                    unit,
                    cell(metric.mean),
                    optional(metric.stddev.map(cell)),
                    metric.samples.len().to_string(),
                ]
            })
            .collect(),
        Some(JobOutcome::Load(load)) => {
            let rate = cell(load.total.bytes_per_second);
            vec![["throughput".into(), "B/s".into(), rate, String::new(), "1".into()]]
        }
        None => Vec::new(),
    };
    if figures.is_empty() { vec![Default::default()] } else { figures }
}

fn row(record: &SetRecord, member: &MemberRecord, figure: [String; 5]) -> Vec<String> {
    let status = match &member.status {
        MemberStatus::Measured(_) => "measured",
        MemberStatus::Failed { .. } => "failed",
        MemberStatus::Unavailable { .. } => "unavailable",
    };
    let mut row = vec![
        record.set.clone(),
        record.repetition.to_string(),
        record.attempts.to_string(),
        record.started_unix_ns.to_string(),
        member.vm.clone(),
        status.to_owned(),
    ];
    row.extend(figure);
    let measured = member.measured();
    let outcome = measured.map(|measured| &measured.outcome);
    let counts = outcome.map(|outcome| match outcome {
        JobOutcome::Load(load) => (load.total.operations, load.total.bytes),
        JobOutcome::Workload(workload) => (workload.operations, workload.bytes),
    });
    row.extend([
        optional(outcome.and_then(JobOutcome::throughput).map(cell)),
        optional(outcome.and_then(JobOutcome::response_ns).map(cell)),
        optional(counts.map(|(operations, _)| operations)),
        optional(counts.map(|(_, bytes)| bytes)),
        optional(outcome.map(JobOutcome::errors)),
        optional(outcome.map(JobOutcome::elapsed_ns)),
        optional(measured.map(|measured| measured.host_elapsed_ns)),
        optional(outcome.and_then(JobOutcome::steal_ns)),
        optional(measured.and_then(|measured| Some(measured.clock.as_ref()?.drift_ppm)).map(cell)),
        optional(record.host.as_ref().map(|host| cell(host.cpu_percent))),
    ]);
    row
}

fn is_in_environment(member: &MemberRecord) -> bool {
    member.measured().is_some_and(|measured| measured.start.is_some())
}

fn home_cells(record: &SetRecord, member: &MemberRecord) -> [String; 8] {
    let measured = member.measured();
    let start = measured.and_then(|measured| measured.start);
    let host = measured.and_then(|measured| measured.host.as_ref());
    [
        optional(start.map(|start| start.late_ns)),
        optional(start.map(|start| start.offset_uncertainty_ns)),
        optional(start.and_then(|start| start.clock_jump_ns)),
        optional(record.start.map(|start| start.uncertainty_ns)),
        optional(record.start.map(|start| start.needed_ns)),
        optional(host.map(|host| cell(host.cpu_percent))),
        optional(host.map(|host| cell(host.steal_percent))),
        optional(host.and_then(|host| host.others_percent).map(cell)),
    ]
}

/// Every machine under every system, in every repetition.
///
/// # Errors
/// The table cannot be written.
pub fn systems_csv<'a>(rows: impl IntoIterator<Item = &'a SystemRow>) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(CsvError::from)?;
    }
    text(writer)
}

/// With one digit behind the point, whole from 100 on.
fn percent(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// As percent, with interval and range in a few characters: `6.8 (0.0 to 21.7; 0.1 to 11.4)`.
#[must_use]
pub fn ranged_percent(ranged: &Ranged) -> String {
    let span = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
    let spans: Vec<String> = [ranged.low.zip(ranged.high), ranged.least.zip(ranged.greatest)]
        .into_iter()
        .flatten()
        .map(span)
        .collect();
    match (ranged.low, spans.is_empty()) {
        (Some(_), false) => format!("{} ({})", percent(ranged.mean), spans.join("; ")),
        _ => percent(ranged.mean),
    }
}

/// In the order of [`COLUMNS`].
fn cells(vm: &SystemVmNumbers) -> [String; 12] {
    let differs =
        |ranged: Option<Ranged>| ranged.map_or_else(|| "-".to_owned(), |ranged| ranged_percent(&ranged));
    let ([a, b], [c, d]) = (vm.per_second.map(number), vm.mean_ms.map(number));
    let ([e, f], [i, j]) = (vm.simulated_mean_ms.map(number), vm.p99_ms.map(number));
    let share = vm.share_percent.map_or_else(|| "-".to_owned(), |share| format!("{share}"));
    let [g, h] = [vm.throughput_deviation, vm.response_deviation].map(differs);
    [share, a, b, g, c, d, h, i, j, e, f, differs(vm.simulated_response_deviation)]
}

/// Why there is nothing of a system, or not all.
#[must_use]
pub fn fate_in_words(system: &SystemNumbers) -> Option<String> {
    match &system.fate {
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
pub const DEVIATION_LEGEND: &str = "Differs: the mean over repetitions of |alone - beside| / alone; in brackets its 95 % interval and the \
                       least and greatest repetition.";

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// A table of systems to be pasted into a document.
#[must_use]
pub fn systems_markdown(compared: &[SystemNumbers]) -> String {
    let mut text =
        format!("| system | VM | {} |\n|---|---{}|\n", COLUMNS.join(" | "), "|---:".repeat(COLUMNS.len()));
    for one in compared {
        for vm in &one.vms {
            let _ = writeln!(text, "| {} | {} | {} |", one.system, vm.vm, cells(vm).join(" | "));
        }
    }
    let summaries = compared.iter().map(|one| {
        let why = fate_in_words(one).map_or_else(String::new, |why| format!("; {why}"));
        format!("- {}: {}{why}\n", one.system, one.summary)
    });
    let _ = write!(text, "\n{DEVIATION_LEGEND}\n\n{}", summaries.collect::<String>());
    text
}

#[cfg(test)]
mod tests {
    use virtbench_model::together::compared_system;

    use super::*;

    fn row(vm: &str, beside_others: bool, mean_ms: f64) -> SystemRow {
        SystemRow {
            system: "none".into(),
            vm: vm.into(),
            share_percent: Some(8.0),
            beside_others,
            per_second: Some(10.0),
            mean_ms: Some(mean_ms),
            p99_ms: Some(2.0 * mean_ms),
            simulated_per_second: Some(10.0),
            ..SystemRow::default()
        }
    }

    #[test]
    fn a_table_for_a_document_has_a_line_for_each_and_says_what_lacks() {
        let rows = [row("vm1", false, 10.0), row("vm1", true, 30.0), row("vm2", true, 35.0)];
        let lacking = SystemFate::Unavailable("no root".into());
        let compared = [
            compared_system("none".into(), "no fence".into(), SystemFate::Measured, &rows),
            compared_system("blkio".into(), "throttled".into(), lacking, &[]),
        ];
        let text = systems_markdown(&compared);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.matches('|').count();
        assert!(lines[..4].iter().all(|line| cells(line) == 15), "{text}");
        assert_eq!(
            lines[2],
            "| none | vm1 | 8 | 10.0 | 10.0 | 0.0 | 10.0 | 30.0 | 200 | 20.0 | 60.0 | - | - | - |"
        );
        assert!(lines[3].starts_with("| none | vm2 | 8 | - | 10.0 | - | - | 35.0 | - |"), "{text}");
        assert!(lines.last().unwrap().ends_with("; unavailable: no root"), "{text}");
        let csv = systems_csv(&rows).unwrap();
        assert!(csv.starts_with("system,vm,share_percent,beside_others,"), "{csv}");
        assert_eq!(csv.lines().count(), 4);
    }

    #[test]
    fn a_deviation_has_its_interval_and_range_where_they_are_known() {
        let whole =
            Ranged { mean: 6.84, low: Some(0.0), high: Some(121.7), least: Some(0.1), greatest: Some(11.4) };
        assert_eq!(ranged_percent(&whole), "6.8 (0.0 to 122; 0.1 to 11.4)");
        assert_eq!(ranged_percent(&Ranged { low: None, high: None, ..whole }), "6.8");
    }
}
