//! The samples of a study of sides as CSV.

use csv::Writer;
use virtbench_record::SamplesRecord;

use crate::rows::{CsvError, figure, text};

/// One row for each sample, in the order in which they were measured; what failed or is not to be had here has one row, which says why.
pub(crate) fn samples_csv(records: &[SamplesRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "side",
        "repetition",
        "started_unix_ns",
        "sample",
        "unit",
        "value",
        "failed",
        "unavailable",
    ])?;
    for record in records {
        let own =
            [record.key.side.clone(), record.key.repetition.to_string(), record.started_unix_ns.to_string()];
        let Some(measured) = record.measured() else {
            let why = |why: Option<&str>| why.unwrap_or_default().to_owned();
            let rest = [
                String::new(),
                String::new(),
                String::new(),
                why(record.failure()),
                why(record.unavailable()),
            ];
            writer.write_record(own.iter().chain(&rest))?;
            continue;
        };
        for sample in &measured.samples {
            let of_sample = [sample.name.clone(), sample.unit.clone(), figure(sample.value)];
            writer.write_record(own.iter().chain(&of_sample).chain(&[String::new(), String::new()]))?;
        }
    }
    text(writer)
}
