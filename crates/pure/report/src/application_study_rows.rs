//! The measurements of an application as CSV.

use csv::Writer;
use virtbench_record::{ApplicationPlan, ApplicationRecord};

use crate::rows::{CsvError, figure, text};

/// One row for each measurement, in their order; what failed has no figures, and says why.
pub(crate) fn application_study_csv(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let columns =
        ["side", "neighbours", "repetition", "started_unix_ns", "failed", "elapsed_ns", "host_cpu_percent"];
    let metrics = plan.metrics.iter().map(|metric| {
        if metric.unit.is_empty() {
            metric.name.clone()
        } else {
            format!("{} [{}]", metric.name, metric.unit)
        }
    });
    writer.write_record(columns.into_iter().map(str::to_owned).chain(metrics))?;
    for record in records {
        let measured = record.measured();
        let own = [
            record.key.side.clone(),
            record.key.neighbours.to_string(),
            record.key.repetition.to_string(),
            record.started_unix_ns.to_string(),
            record.failure().unwrap_or_default().to_owned(),
            measured.map_or_else(String::new, |measured| measured.elapsed_ns.to_string()),
            measured.map_or_else(String::new, |measured| figure(measured.host.cpu_percent)),
        ];
        let value = |name: &String| measured.and_then(|measured| measured.values.get(name));
        let values = plan
            .metrics
            .iter()
            .map(|metric| value(&metric.name).map_or_else(String::new, |value| figure(*value)));
        writer.write_record(own.into_iter().chain(values))?;
    }
    text(writer)
}
