//! The measured repetitions as CSV, and what pairs of configurations come to.

use csv::Writer;
use thiserror::Error;
use virtbench_model::Analysis;
use virtbench_model::pairwise::{Judged, Metric};
use virtbench_record::{DirectionStats, Measured, PointRecord};
use virtbench_units::{LatencySummary, rounded};

/// A table that could not be written.
#[derive(Debug, Error)]
#[error("the CSV table cannot be written: {0}")]
pub struct CsvError(String);

impl From<csv::Error> for CsvError {
    fn from(error: csv::Error) -> Self {
        Self(error.to_string())
    }
}

const HEADER: &[&str] = &[
    "environment",
    "block_bytes",
    "read_percent",
    "random_percent",
    "repetition",
    "started_unix_ns",
    "operations",
    "bytes",
    "iops",
    "bytes_per_second",
    "read_bytes_per_second",
    "write_bytes_per_second",
    "latency_min_ns",
    "latency_mean_ns",
    "latency_stddev_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "latency_max_ns",
    "read_latency_mean_ns",
    "write_latency_mean_ns",
    "errors",
    "host_cpu_percent",
    "host_user_percent",
    "host_system_percent",
    "host_steal_percent",
    "host_processors",
    "generator_cpu_ns",
    "elapsed_ns",
    "host_elapsed_ns",
    "clock_drift_ppm",
    "clock_suspect",
    "interrupted",
    "direct",
];

/// One row for each measured repetition, in the order of `records`; what was not measured has no
/// row, and a cell without a value is empty, never zero. Units stand at the end of each column's
/// name.
///
/// # Errors
/// The writer failed, which only an exhausted memory can cause.
pub fn csv(records: &[PointRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let error = |error: csv::Error| CsvError(error.to_string());
    writer.write_record(HEADER).map_err(error)?;
    for record in records {
        if let Some(measured) = record.measured() {
            writer.write_record(row(record, measured)).map_err(error)?;
        }
    }
    text(writer)
}

pub(crate) fn text(writer: Writer<Vec<u8>>) -> Result<String, CsvError> {
    let bytes = writer.into_inner().map_err(|error| CsvError(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| CsvError(error.to_string()))
}

const VERDICT_HEADER: &[&str] = &[
    "first",
    "second",
    "block_bytes",
    "read_percent",
    "random_percent",
    "quantity",
    "ratio",
    "low",
    "high",
    "pairs",
    "verdict",
];

const QUANTITIES: [(Metric, &str); 3] = [
    (Metric::Rate, "throughput"),
    (Metric::Efficiency, "iops_per_cpu_percent"),
    (Metric::ResponseTime, "response_time"),
];

/// A row for each pair of configurations, point and quantity.
pub(crate) fn verdicts_csv(analysis: &Analysis) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let error = |error: csv::Error| CsvError(error.to_string());
    writer.write_record(VERDICT_HEADER).map_err(error)?;
    for pair in &analysis.pairs {
        for point in &pair.points {
            for (metric, quantity) in QUANTITIES {
                let Some(Judged { ratio, finding }) = point.judged(metric) else { continue };
                let end = |value: Option<f64>| value.map_or_else(String::new, figure);
                let row = [
                    analysis.name(pair.first).to_owned(),
                    analysis.name(pair.second).to_owned(),
                    point.key.block_bytes.to_string(),
                    point.key.read_percent.to_string(),
                    point.key.random_percent.to_string(),
                    quantity.to_owned(),
                    figure(ratio.value),
                    end(ratio.interval.map(|span| span.low)),
                    end(ratio.interval.map(|span| span.high)),
                    ratio.pairs.to_string(),
                    finding.name().to_owned(),
                ];
                writer.write_record(row).map_err(error)?;
            }
        }
    }
    text(writer)
}

fn row(record: &PointRecord, measured: &Measured) -> Vec<String> {
    let Measured { outcome, host, processes: _, host_elapsed_ns, clock } = measured;
    let mut row = vec![
        record.environment.clone(),
        record.point.block_bytes.to_string(),
        record.point.read_percent.to_string(),
        record.point.random_percent.to_string(),
        record.repetition.to_string(),
        record.started_unix_ns.to_string(),
        outcome.total.operations.to_string(),
        outcome.total.bytes.to_string(),
        figure(outcome.total.iops),
        figure(outcome.total.bytes_per_second),
        figure(outcome.read.bytes_per_second),
        figure(outcome.write.bytes_per_second),
    ];
    row.extend(latency_cells(outcome.total.latency_ns.as_ref()));
    row.extend([
        mean_latency(&outcome.read),
        mean_latency(&outcome.write),
        outcome.errors.to_string(),
        figure(host.cpu_percent),
        figure(host.user_percent),
        figure(host.system_percent),
        figure(host.steal_percent),
        host.processors.to_string(),
        outcome.own_cpu_ns[0].saturating_add(outcome.own_cpu_ns[1]).to_string(),
        outcome.elapsed_ns.to_string(),
        host_elapsed_ns.to_string(),
        clock.as_ref().map_or_else(String::new, |clock| figure(clock.drift_ppm)),
        clock.as_ref().map_or_else(String::new, |clock| clock.is_suspect().to_string()),
        outcome.interrupted.to_string(),
        outcome.target.direct.to_string(),
    ]);
    row
}

/// A figure as tables have it.
pub(crate) fn figure(value: f64) -> String {
    rounded(value).to_string()
}

fn latency_cells(latency: Option<&LatencySummary>) -> [String; 9] {
    let Some(latency) = latency else { return Default::default() };
    [
        latency.min.to_string(),
        figure(latency.mean),
        figure(latency.stddev),
        latency.p50.to_string(),
        latency.p90.to_string(),
        latency.p95.to_string(),
        latency.p99.to_string(),
        latency.p99_9.to_string(),
        latency.max.to_string(),
    ]
}

fn mean_latency(direction: &DirectionStats) -> String {
    direction.latency_ns.map_or_else(String::new, |latency| figure(latency.mean))
}
