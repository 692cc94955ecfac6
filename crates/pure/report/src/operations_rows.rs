//! What a run of management operations came to for other programs: its pieces as CSV, and all of it as OpenMetrics.

use std::fmt::Write as _;

use csv::Writer;
use virtbench_model::operations::{KindAnalysis, OperationsAnalysis, StepAnalysis};
use virtbench_record::{
    JobFigure, ManagementUse, OperationKind, OperationsMeasured, OperationsRecord, Phase,
};
use virtbench_units::rounded;

use crate::rows::{CsvError, figure, text};

/// Columns after those of phases and jobs; the management stack's are of all operations alone.
const LAST: [&str; 6] = [
    "p95_ns",
    "done_per_minute",
    "management_processes",
    "management_cpu_percent",
    "management_resident_bytes",
    "management_unavailable",
];

/// One row for each operation of each piece, in their order, then one for each way to clone where there were several, then one for all
/// operations, whose done_per_minute is the score; what was not measured has no row.
pub(crate) fn operations_csv(records: &[OperationsRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let columns = [
        "vms",
        "piece",
        "per_minute",
        "started_unix_ns",
        "operation",
        "done",
        "failed",
        "retries",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "mean_ns",
    ];
    let phases = Phase::ALL.map(|phase| format!("{}_mean_ns", phase.name()));
    let jobs = JobFigure::ALL.map(|figure| format!("job_{}_mean", figure.name()));
    writer.write_record(
        columns.into_iter().map(str::to_owned).chain(phases).chain(jobs).chain(LAST.map(str::to_owned)),
    )?;
    for record in records {
        let Some(measured) = record.measured() else { continue };
        let operations = measured.operations.iter().map(|(kind, one)| (kind.name().to_owned(), one));
        let clones = measured.clones.iter().map(|(way, one)| (format!("clone ({})", way.name()), one));
        for (name, one) in operations.chain(clones) {
            let own = [
                record.key.vms.to_string(),
                record.key.piece.to_string(),
                record.key.per_minute.map_or_else(String::new, |rate| rounded(rate).to_string()),
                record.started_unix_ns.to_string(),
                name.clone(),
                one.done.to_string(),
                one.failed.values().sum::<u64>().to_string(),
                one.retries.to_string(),
            ];
            let latency = one.latency_ns.as_ref();
            let latency = latency.map_or_else(Default::default, |latency| {
                [latency.p50 as f64, latency.p90 as f64, latency.p99 as f64, latency.mean].map(figure)
            });
            let phases = Phase::ALL.map(|phase| {
                one.phases_ns.get(&phase).map_or_else(String::new, |length| figure(length.mean))
            });
            let jobs = JobFigure::ALL
                .map(|figure| one.job.get(&figure).map_or_else(String::new, |told| self::figure(told.mean)));
            let p95 = one.latency_ns.map_or_else(String::new, |latency| figure(latency.p95 as f64));
            let rate = measured.steady.as_ref().and_then(|steady| steady.rate_of(&name));
            let none = String::new;
            let last = [p95, rate.map_or_else(none, figure), none(), none(), none(), none()];
            writer.write_record(own.into_iter().chain(latency).chain(phases).chain(jobs).chain(last))?;
        }
        writer.write_record(all(record, measured))?;
    }
    text(writer)
}

/// The row of all operations of a piece; columns of single operations stay empty.
fn all(record: &OperationsRecord, measured: &OperationsMeasured) -> Vec<String> {
    let mut row = vec![
        record.key.vms.to_string(),
        record.key.piece.to_string(),
        record.key.per_minute.map_or_else(String::new, |rate| rounded(rate).to_string()),
        record.started_unix_ns.to_string(),
        "all".to_owned(),
        measured.done().to_string(),
        measured.failed().to_string(),
        measured.operations.values().map(|one| one.retries).sum::<u64>().to_string(),
    ];
    let latency = measured.latency_ns.as_ref();
    row.extend(latency.map_or_else(Default::default, |latency| {
        [latency.p50 as f64, latency.p90 as f64, latency.p99 as f64, latency.mean].map(figure)
    }));
    row.extend(vec![String::new(); Phase::ALL.len() + JobFigure::ALL.len()]);
    row.push(latency.map_or_else(String::new, |latency| figure(latency.p95 as f64)));
    row.push(figure(measured.per_minute()));
    row.extend(management(measured.management.as_ref()));
    row
}

/// The names of its processes, what they used together, and why some are missing.
fn management(used: Option<&ManagementUse>) -> [String; 4] {
    let Some(used) = used else { return Default::default() };
    let why = used.unavailable.clone().unwrap_or_default();
    if used.processes.is_empty() {
        return [String::new(), String::new(), String::new(), why];
    }
    let names: Vec<&str> = used.processes.iter().map(|process| process.name.as_str()).collect();
    let cpu_percent = used.processes.iter().map(|process| process.cpu_percent).sum();
    let resident_bytes: u64 = used.processes.iter().map(|process| process.resident_bytes).sum();
    [names.join(" "), figure(cpu_percent), resident_bytes.to_string(), why]
}

/// A sample: its labels after those of its step, and its value.
type Sample = (String, f64);

/// A family of metrics: its name, its unit, what it is, and its samples of a step.
struct Family {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: fn(&StepAnalysis) -> Vec<Sample>,
}

/// All families, each with the number of VMs and the rate as labels: several steps of a run are told apart by these.
const FAMILIES: [Family; 6] = [
    Family {
        name: "virtbench_management_operations",
        kind: "counter",
        unit: "",
        help: "Management operations that ended, by what became of them.",
        samples: ended,
    },
    Family {
        name: "virtbench_management_median_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Median latency from the intended start.",
        samples: |step| by_kind(step, |kind| kind.median_ns().map(seconds)),
    },
    Family {
        name: "virtbench_management_most_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Latency that 95 % of operations do not exceed.",
        samples: |step| by_kind(step, |kind| kind.mean_and_p95_ns[1].map(|estimate| seconds(estimate.mean))),
    },
    Family {
        name: "virtbench_management_phase_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Mean time in a phase of an operation.",
        samples: phases,
    },
    Family {
        name: "virtbench_management_rate_per_minute",
        kind: "gauge",
        unit: "",
        help: "Operations done a minute in the steady state.",
        samples: |step| step.achieved.map(|rate| (String::new(), rate.mean)).into_iter().collect(),
    },
    Family {
        name: "virtbench_management_resident_bytes",
        kind: "gauge",
        unit: "bytes",
        help: "Memory of the platform's own processes.",
        samples: |step| {
            let named = |name: &str| format!(",process=\"{}\"", escape(name));
            step.management.iter().map(|one| (named(&one.name), one.resident_bytes as f64)).collect()
        },
    },
];

/// The metrics of a run on this platform.
pub(crate) fn operations_metrics(platform: &str, analysis: &OperationsAnalysis) -> String {
    let mut out = String::new();
    for family in &FAMILIES {
        let Family { name, kind, unit, help, samples } = family;
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
        let suffix = if *kind == "counter" { "_total" } else { "" };
        for step in &analysis.steps {
            let rate = step.per_minute.map_or_else(|| "closed".to_owned(), |rate| rounded(rate).to_string());
            for (labels, value) in samples(step) {
                let _ = writeln!(
                    out,
                    "{name}{suffix}{{platform=\"{}\",vms=\"{}\",asked=\"{rate}\"{labels}}} {}",
                    escape(platform),
                    step.vms,
                    rounded(value)
                );
            }
        }
    }
    out.push_str("# EOF\n");
    out
}

fn ended(step: &StepAnalysis) -> Vec<Sample> {
    let ends = step.kinds.iter().flat_map(|(operation, kind)| {
        let failed = kind.failed.iter().map(|(failure, count)| (failure.name(), *count));
        std::iter::once(("done", kind.done))
            .chain(failed)
            .map(|(outcome, count)| (format!("{},outcome=\"{outcome}\"", label(*operation)), count as f64))
    });
    ends.collect()
}

fn phases(step: &StepAnalysis) -> Vec<Sample> {
    let phases = step.kinds.iter().flat_map(|(operation, kind)| {
        kind.phases_ns
            .iter()
            .map(|(phase, ns)| (format!("{},phase=\"{}\"", label(*operation), phase.name()), seconds(*ns)))
    });
    phases.collect()
}

fn by_kind(step: &StepAnalysis, figure: fn(&KindAnalysis) -> Option<f64>) -> Vec<Sample> {
    step.kinds.iter().filter_map(|(operation, kind)| Some((label(*operation), figure(kind)?))).collect()
}

fn label(operation: OperationKind) -> String {
    format!(",operation=\"{}\"", operation.name())
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

/// A label's value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
