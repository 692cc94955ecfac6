//! Machines that ran together as CSV.

use csv::Writer;
use virtbench_record::{JobOutcome, MemberRecord, MemberStatus, SetRecord};

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
