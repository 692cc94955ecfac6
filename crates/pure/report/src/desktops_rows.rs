//! What users of desktops saw as CSV: a row for each operation.

use csv::Writer;
use virtbench_record::{DesktopsPlan, DesktopsRecord};

use crate::rows::{CsvError, text};

/// One row for each operation, in the order of their ends.
pub(crate) fn desktops_csv(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "desktops",
        "repetition",
        "user",
        "application",
        "operation",
        "group",
        "storm",
        "begun_ns",
        "latency_ns",
        "first_change_ns",
        "last_change_ns",
        "inside_ns",
        "around_ns",
        "failed",
        "video_frames",
        "video_seen",
        "video_elapsed_ns",
        "video_freeze_ns",
    ])?;
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    for record in records {
        for done in record.measured().into_iter().flat_map(|measured| &measured.operations) {
            let Some(operation) = plan.operations.get(done.operation as usize) else { continue };
            let times = done.times;
            let video = times.and_then(|times| times.video);
            writer.write_record([
                record.key.desktops.to_string(),
                record.key.repetition.to_string(),
                done.user.to_string(),
                operation.application.clone(),
                operation.operation.clone(),
                operation.group.name().to_owned(),
                done.storm.to_string(),
                done.begun_ns.to_string(),
                number(times.map(|times| times.latency_ns)),
                number(times.and_then(|times| times.first_change_ns)),
                number(times.and_then(|times| times.last_change_ns)),
                number(times.and_then(|times| times.inside_ns)),
                number(times.and_then(|times| times.around_ns)),
                done.failed.clone().unwrap_or_default(),
                number(video.map(|video| video.frames.into())),
                number(video.map(|video| video.seen.into())),
                number(video.map(|video| video.elapsed_ns)),
                number(video.map(|video| video.freeze_ns)),
            ])?;
        }
    }
    text(writer)
}
