//! HdrHistogram interval logs, as HdrHistogram's own tools read them.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::{ExportError, JobResult, histogram, sides};

/// Writes a log with one line for each job and direction that had operations. The tag is the job's
/// name and the direction; values are nanoseconds, and the maximum column is milliseconds.
///
/// # Errors
/// A stored histogram is damaged.
pub fn hlog(jobs: &[JobResult<'_>]) -> Result<String, ExportError> {
    let failed = |error: &dyn std::fmt::Debug| ExportError::Log(format!("{error:?}"));
    let start_ns = jobs.iter().map(|job| job.started_unix_ns).min().unwrap_or(0);
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("written by virtbench; latencies in nanoseconds")
        .with_start_time(UNIX_EPOCH + Duration::from_nanos(start_ns))
        .with_base_time(UNIX_EPOCH + Duration::from_nanos(start_ns))
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| failed(&error))?;
    for job in jobs {
        let since = Duration::from_nanos(job.started_unix_ns - start_ns);
        let length = Duration::from_nanos(job.outcome.elapsed_ns);
        for (direction, stats) in sides(job) {
            let histogram = histogram(stats)?;
            if histogram.is_empty() {
                continue;
            }
            // A comma would end the tag, a blank the line's column.
            let name: String = job.name.replace([',', ' ', '\n', '\r', '\t'], "_");
            let tag = format!("{name}/{direction}");
            writer
                .write_histogram(&histogram, since, length, Tag::new(&tag))
                .map_err(|error| failed(&error))?;
        }
    }
    String::from_utf8(text).map_err(|error| failed(&error))
}
