//! Outcomes in other tools' formats.

mod diskspd_xml;
mod fio_json;
mod hlog;
mod iometer_csv;
mod moment;
mod openmetrics;

use hdrhistogram::Histogram;
use thiserror::Error;
use virtbench_record::{DirectionStats, HostUse, LoadOutcome};
use virtbench_units::{CodecError, decode_histogram};

pub use diskspd_xml::diskspd_xml;
pub use fio_json::fio_json;
pub use hlog::hlog;
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

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;

#[cfg(test)]
mod fixture;
