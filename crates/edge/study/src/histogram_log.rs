//! Latencies of all operations of a run, as an HdrHistogram log.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use virtbench_record::{PointRecord, PointStatus};
use virtbench_units::decode_histogram;

/// Moves a record's histograms into the lines of an HdrHistogram log.
pub(crate) fn take(record: &mut PointRecord) -> Vec<u8> {
    let tag = record.histogram_tag();
    let start = Duration::from_nanos(record.started_unix_ns);
    let mut log = Vec::new();
    let PointStatus::Measured(measured) = &mut record.status else { return log };
    let outcome = &mut measured.outcome;
    let length = Duration::from_nanos(outcome.elapsed_ns);
    // Both directions together can be added up again.
    outcome.total.histogram = None;
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    let Ok(mut writer) = builder.with_max_value_divisor(1e6).begin_log_with(&mut log, &mut serializer) else {
        return Vec::new();
    };
    for (stats, direction) in [(&mut outcome.read, "read"), (&mut outcome.write, "write")] {
        let Some(histogram) = stats.histogram.take().and_then(|text| decode_histogram(&text).ok()) else {
            continue;
        };
        let name = format!("{tag}/{direction}");
        // Writing into memory does not fail.
        let _ = writer.write_histogram(&histogram, start, length, Tag::new(&name));
    }
    log
}

/// Reads a log into encoded histograms by tag; a line that was cut short ends it. Of two lines with
/// one tag the later counts.
pub(crate) fn parse(log: &[u8]) -> BTreeMap<String, String> {
    IntervalLogIterator::new(log)
        .map_while(Result::ok)
        .filter_map(|entry| match entry {
            LogEntry::Interval(interval) => {
                Some((interval.tag()?.as_str().to_owned(), interval.encoded_histogram().to_owned()))
            }
            _ => None,
        })
        .collect()
}
