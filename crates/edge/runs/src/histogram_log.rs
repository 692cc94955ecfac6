//! Latencies of all operations of a run, as an HdrHistogram log.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use virtbench_record::{Record, TakenHistogram};
use virtbench_units::decode_histogram;

/// Moves a record's histograms into the lines of an HdrHistogram log.
pub(crate) fn take(record: &mut impl Record) -> Vec<u8> {
    let mut log = Vec::new();
    let taken = record.take_histograms();
    if taken.is_empty() {
        return log;
    }
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    let Ok(mut writer) = builder.with_max_value_divisor(1e6).begin_log_with(&mut log, &mut serializer) else {
        return Vec::new();
    };
    for TakenHistogram { tag, started_unix_ns, length_ns, histogram } in taken {
        // A tag that the log's format does not take would end it for every reader.
        let (Ok(histogram), Some(name)) = (decode_histogram(&histogram), Tag::new(&tag)) else { continue };
        let (start, length) = (Duration::from_nanos(started_unix_ns), Duration::from_nanos(length_ns));
        // Writing into memory does not fail.
        let _ = writer.write_histogram(&histogram, start, length, Some(name));
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
