//! What a run of management operations came to, as OpenMetrics: for Prometheus, by node_exporter's collector of text files.

use std::fmt::Write as _;

use virtbench_model::operations::{KindAnalysis, OperationsAnalysis, StepAnalysis};
use virtbench_record::OperationKind;
use virtbench_units::rounded;

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
