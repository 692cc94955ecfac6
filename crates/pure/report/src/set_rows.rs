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

/// A row for each figure of each machine, in the order of `records`; one that failed has a row too. A
/// cell without a value is empty, never zero. Units stand at the end of each column's name.
///
/// # Errors
/// The writer failed, which only an exhausted memory can cause.
pub fn sets_csv(records: &[SetRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(HEADER).map_err(CsvError::from)?;
    for record in records {
        for member in &record.members {
            for figure in figures(member) {
                writer.write_record(row(record, member, figure)).map_err(CsvError::from)?;
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
