//! Outcomes in other tools' formats.

mod diskspd_xml;
mod fio_json;
mod iometer_csv;
mod openmetrics;

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use thiserror::Error;
use virtbench_record::{DirectionStats, HostUse, LoadOutcome};
use virtbench_units::{CodecError, decode_histogram};

pub use diskspd_xml::diskspd_xml;
pub use fio_json::fio_json;
pub use iometer_csv::iometer_csv;
pub use openmetrics::openmetrics;

/// The result of one job.
#[derive(Debug, Clone, Copy)]
pub struct JobResult<'a> {
    /// The job's name.
    pub name: &'a str,
    /// The outcome, with its histograms.
    pub outcome: &'a LoadOutcome,
    /// What it cost the host, where that was sampled.
    pub host: Option<&'a HostUse>,
    /// When measuring began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
}

/// What could not be written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// A histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] CodecError),
    /// JSON refused a number.
    #[error("the results have a number that JSON cannot hold: {0}")]
    Json(#[from] serde_json::Error),
    /// A text could not be put together.
    #[error("the export cannot be written: {0}")]
    Log(String),
}

/// The histogram of one direction; empty where nothing completed or none was kept.
fn histogram(stats: &DirectionStats) -> Result<Histogram<u64>, CodecError> {
    match &stats.histogram {
        Some(text) => decode_histogram(text),
        None => Ok(virtbench_units::LatencyRecorder::new().histogram().clone()),
    }
}

/// The directions that a load has, by name: reads and writes always, trims where it trims.
fn sides<'a>(job: &JobResult<'a>) -> Vec<(&'static str, &'a DirectionStats)> {
    let outcome = job.outcome;
    let trim = outcome.trim.as_ref().map(|trim| ("trim", trim));
    [("read", &outcome.read), ("write", &outcome.write)].into_iter().chain(trim).collect()
}

/// A moment's parts.
struct Moment {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The day of the week, from Thursday, as 1970 began with one.
    pub weekday: u64,
    /// Hours of the day.
    pub hour: u64,
    /// Minutes of the hour.
    pub minute: u64,
    /// Seconds of the minute.
    pub second: u64,
}

impl Moment {
    /// So many seconds after 1970 began. Civil date from days: Hinnant, "chrono-Compatible Low-Level Date
    /// Algorithms".
    pub fn from_unix(unix_s: u64) -> Self {
        let (days, second) = (unix_s / 86_400, unix_s % 86_400);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: era * 400 + year_of_era + u64::from(month < 3),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            weekday: days % 7,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

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

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;

#[cfg(test)]
mod fixture;
