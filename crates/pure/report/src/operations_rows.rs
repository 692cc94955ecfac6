//! Pieces of a run of management operations as CSV: a row for each operation of each piece.

use csv::Writer;
use virtbench_record::{JobFigure, OperationsRecord, Phase};
use virtbench_units::rounded;

use crate::rows::{CsvError, figure, text};

/// One row for each operation of each piece, in their order, then one for each way to clone where there were several; what was not measured has no row.
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
    writer.write_record(columns.into_iter().map(str::to_owned).chain(phases).chain(jobs))?;
    for record in records {
        let Some(measured) = record.measured() else { continue };
        let operations = measured.operations.iter().map(|(kind, one)| (kind.name().to_owned(), one));
        let clones = measured.clones.iter().map(|(way, one)| (format!("clone ({})", way.name()), one));
        for (name, one) in operations.chain(clones) {
            let own = [
                record.vms.to_string(),
                record.piece.to_string(),
                record.per_minute.map_or_else(String::new, |rate| rounded(rate).to_string()),
                record.started_unix_ns.to_string(),
                name,
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
            writer.write_record(own.into_iter().chain(latency).chain(phases).chain(jobs))?;
        }
    }
    text(writer)
}
