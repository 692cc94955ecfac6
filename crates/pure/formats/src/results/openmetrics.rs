//! OpenMetrics text (version 1.0.0), for Prometheus and its relatives.
//!
//! Written by hand: `prometheus-client` keeps live, atomic metrics that a program serves, and
//! fills its histograms one observation at a time; here a finished histogram is written once.

use std::fmt::Write as _;

use hdrhistogram::iterators::IterationValue;
use virtbench_units::rounded;

use super::{ExportError, JobResult, histogram, sides};

/// Upper ends of the latency buckets, in nanoseconds: 1, 2, 5 a decade from 1 us to 10 s.
const BUCKETS_NS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Writes the results. Every sample has the labels `job` and `target`.
///
/// # Errors
/// A stored histogram is damaged.
pub fn openmetrics(jobs: &[JobResult<'_>]) -> Result<String, ExportError> {
    let mut out = String::new();
    let labels: Vec<String> = jobs
        .iter()
        .map(|job| format!("job=\"{}\",target=\"{}\"", escape(job.name), escape(&job.outcome.target.path)))
        .collect();
    let all = || jobs.iter().zip(&labels);

    head(&mut out, "virtbench_operations", "counter", "", "Operations completed while measuring.");
    for (job, labels) in all() {
        for (name, stats) in sides(job) {
            line(&mut out, "virtbench_operations_total", labels, name, &stats.operations);
        }
    }
    head(&mut out, "virtbench_bytes", "counter", "bytes", "Bytes moved while measuring.");
    for (job, labels) in all() {
        for (name, stats) in sides(job) {
            line(&mut out, "virtbench_bytes_total", labels, name, &stats.bytes);
        }
    }
    head(&mut out, "virtbench_iops", "gauge", "", "Operations per second.");
    for (job, labels) in all() {
        for (name, stats) in sides(job) {
            line(&mut out, "virtbench_iops", labels, name, &rounded(stats.iops));
        }
    }
    head(&mut out, "virtbench_errors", "counter", "", "Operations that failed, by the error's name.");
    for (job, labels) in all() {
        for (kind, count) in &job.outcome.error_kinds {
            let _ = writeln!(out, "virtbench_errors_total{{{labels},error=\"{}\"}} {count}", escape(kind));
        }
    }
    head(&mut out, "virtbench_measured_seconds", "gauge", "seconds", "How long was measured.");
    for (job, labels) in all() {
        let _ = writeln!(
            out,
            "virtbench_measured_seconds{{{labels}}} {}",
            rounded(seconds(job.outcome.elapsed_ns))
        );
    }
    head(&mut out, "virtbench_host_cpu_ratio", "gauge", "ratio", "Processors of the host that were busy.");
    for (job, labels) in all() {
        if let Some(host) = job.host {
            let _ =
                writeln!(out, "virtbench_host_cpu_ratio{{{labels}}} {}", rounded(host.cpu_percent / 100.0));
        }
    }
    head(&mut out, "virtbench_latency_seconds", "histogram", "seconds", "Latency of each operation.");
    for (job, labels) in all() {
        for (name, stats) in sides(job) {
            let histogram = histogram(stats)?;
            // A step of the histogram is 0.1 % wide; it counts from its lower end.
            let least = |step: &IterationValue<u64>| histogram.lowest_equivalent(step.value_iterated_to());
            let mut steps = histogram.iter_recorded().peekable();
            let mut count = 0;
            for end_ns in BUCKETS_NS {
                while let Some(step) = steps.next_if(|step| least(step) <= end_ns) {
                    count += step.count_at_value();
                }
                bucket(&mut out, labels, name, &seconds(end_ns).to_string(), count);
            }
            bucket(&mut out, labels, name, "+Inf", histogram.len());
            line(&mut out, "virtbench_latency_seconds_count", labels, name, &histogram.len());
            let sum_s = stats.latency_ns.map_or(0.0, |latency| latency.mean * histogram.len() as f64 / 1e9);
            line(&mut out, "virtbench_latency_seconds_sum", labels, name, &rounded(sum_s));
        }
    }
    out.push_str("# EOF\n");
    Ok(out)
}

fn head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

fn line(out: &mut String, name: &str, labels: &str, direction: &str, value: &dyn std::fmt::Display) {
    let _ = writeln!(out, "{name}{{{labels},direction=\"{direction}\"}} {value}");
}

fn bucket(out: &mut String, labels: &str, direction: &str, end: &str, count: u64) {
    let labels = format!("{labels},direction=\"{direction}\",le=\"{end}\"");
    let _ = writeln!(out, "virtbench_latency_seconds_bucket{{{labels}}} {count}");
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A label's value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
