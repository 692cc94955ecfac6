//! A measured point: one line of `results.jsonl`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::format_bytes;

use crate::FORMAT;
use crate::host_use::{HostUse, ProcessUse};
use crate::outcome::{LoadOutcome, TakenHistogram};
use crate::plan::Plan;

/// A point of the throughput surface ([ESX Disk 2003], section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointKey {
    /// Size of each operation, in bytes.
    pub block_bytes: u64,
    /// Share of reads, in percent.
    pub read_percent: u8,
    /// Share of random seeks, in percent.
    pub random_percent: u8,
}

impl std::fmt::Display for PointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}, {} % read, {} % random",
            format_bytes(self.block_bytes),
            self.read_percent,
            self.random_percent
        )
    }
}

/// The measuring machine's clock held against the host's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockCheck {
    /// How much faster the guest's clock ran than the host's, in parts per million.
    pub drift_ppm: f64,
    /// Half-width of what the round trips leave open, in parts per million.
    pub uncertainty_ppm: f64,
}

impl ClockCheck {
    /// Whether the clock ran more than 1 % off for sure: its figures must not be trusted.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.drift_ppm.abs() - self.uncertainty_ppm > 10_000.0
    }
}

/// A job that was measured: a load, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Measured"))]
pub struct Measured<O = LoadOutcome> {
    /// What the job did, by the measuring machine's clock.
    pub outcome: O,
    /// What it cost the host.
    pub host: HostUse,
    /// What of that was seen to be whose: hypervisors, servers of backings, virtbench itself. Empty
    /// where it was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
    /// The measuring time by the host's clock, in nanoseconds.
    pub host_elapsed_ns: u64,
    /// The guest's clock against the host's; absent where they are the same clock.
    pub clock: Option<ClockCheck>,
}

impl<O> Measured<O> {
    /// The same measurement of another kind of outcome; nothing where `change` gives nothing.
    #[must_use]
    pub fn filter_map<P>(self, change: impl FnOnce(O) -> Option<P>) -> Option<Measured<P>> {
        let Self { outcome, host, host_elapsed_ns, clock, processes } = self;
        Some(Measured { outcome: change(outcome)?, host, host_elapsed_ns, clock, processes })
    }
}

/// What became of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum PointStatus {
    /// It was measured.
    Measured(Box<Measured>),
    /// It cannot be measured here.
    Unavailable {
        /// Why not.
        why: String,
    },
}

/// One line of `results.jsonl`: one repetition of one point in one environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointRecord {
    /// Version of the format, [`FORMAT`].
    pub format: u32,
    /// Which point.
    pub point: PointKey,
    /// Name of the environment it was measured in, such as `native` or `vm`.
    pub environment: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// When measuring began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub status: PointStatus,
}

impl PointRecord {
    /// The measurement, if there is one.
    #[must_use]
    pub fn measured(&self) -> Option<&Measured> {
        match &self.status {
            PointStatus::Measured(measured) => Some(measured),
            PointStatus::Unavailable { .. } => None,
        }
    }

    /// The tag under which this point's latencies stand in the HdrHistogram log, less the direction.
    #[must_use]
    pub fn histogram_tag(&self) -> String {
        let PointKey { block_bytes, read_percent, random_percent } = self.point;
        format!("{}/b{block_bytes}-r{read_percent}-x{random_percent}/{}", self.environment, self.repetition)
    }
}

/// A line of `results.jsonl`: the result of one step of a run.
pub trait Record: Serialize + DeserializeOwned {
    /// Files and folders beside the results that a run of this kind keeps what it has measured in: a folder
    /// with one of them is no run that may make way for another.
    const BESIDE: &'static [&'static str] = &[];

    /// Whether a run with this plan has such lines.
    fn follows(plan: &Plan) -> bool;

    /// Takes the latency histograms out, to be kept beside the results.
    fn take_histograms(&mut self) -> Vec<TakenHistogram>;
}

impl Record for PointRecord {
    fn follows(plan: &Plan) -> bool {
        plan.grid().is_some()
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        let (tag, started_unix_ns) = (self.histogram_tag(), self.started_unix_ns);
        let PointStatus::Measured(measured) = &mut self.status else { return Vec::new() };
        measured.outcome.take_histograms(&tag, started_unix_ns)
    }
}

/// A results file that cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A line in the middle is damaged.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Its number, from 1.
        line: usize,
        /// What the reader said.
        why: String,
    },
    /// A line was written by a later version.
    #[error("written in format {found}, this version reads up to {newest}: update virtbench")]
    TooNew {
        /// The format found.
        found: u64,
        /// The newest that this version reads.
        newest: u32,
    },
}

/// Reads `results.jsonl`. A last line without its end is what a killed run leaves: it is passed
/// over, and the length of the whole lines before it is returned so that a resumed run can cut there.
///
/// # Errors
/// A damaged line that is not the last, or a newer format.
pub fn parse_records<R: Record>(text: &str) -> Result<(Vec<R>, usize), RecordError> {
    let mut records = Vec::new();
    let mut whole = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        whole += line.len();
        if line.trim().is_empty() {
            continue;
        }
        records.push(parse_line(line, index + 1)?);
    }
    Ok((records, whole))
}

fn parse_line<R: Record>(line: &str, number: usize) -> Result<R, RecordError> {
    let damaged = |error: serde_json::Error| RecordError::Damaged { line: number, why: error.to_string() };
    let value: serde_json::Value = serde_json::from_str(line).map_err(damaged)?;
    check_format(&value, FORMAT)?;
    serde_json::from_value(value).map_err(damaged)
}

/// Refuses what a later version wrote.
pub(crate) fn check_format(value: &serde_json::Value, newest: u32) -> Result<(), RecordError> {
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(newest) => Err(RecordError::TooNew { found, newest }),
        _ => Ok(()),
    }
}

/// The figures of one repetition of one point ([ESX Adapters 2006], "Metrics").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointMetrics {
    /// I/O rate, in operations per second.
    pub iops: f64,
    /// Throughput, in bytes per second.
    pub bytes_per_second: f64,
    /// Mean response time, in nanoseconds, where it is known.
    pub latency_ns: Option<f64>,
    /// Host CPU use, in percent of one processor, summed over all of them, where it is known.
    pub cpu_percent: Option<f64>,
}

impl PointMetrics {
    /// Operations per second for each percent of host CPU ([ESX Adapters 2006]); nothing where no use is known.
    #[must_use]
    pub fn iops_per_cpu_percent(&self) -> Option<f64> {
        self.cpu_percent.filter(|percent| *percent > 0.0).map(|percent| self.iops / percent)
    }
}

impl From<&Measured> for PointMetrics {
    fn from(measured: &Measured) -> Self {
        let Measured { outcome: LoadOutcome { total, .. }, host: HostUse { cpu_percent, .. }, .. } = measured;
        Self {
            iops: total.iops,
            bytes_per_second: total.bytes_per_second,
            latency_ns: total.latency_ns.map(|latency| latency.mean),
            cpu_percent: Some(*cpu_percent),
        }
    }
}

/// A row of a table of results: one repetition of one point in one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultRow {
    /// Name of the configuration, such as an adapter's.
    pub configuration: String,
    /// Which point.
    pub point: PointKey,
    /// Which repetition, from 0. Rows of the same number were measured next to each other in time.
    pub repetition: u32,
    /// Its figures.
    pub figures: PointMetrics,
}

/// Results that somebody published or collected, such as [ESX Adapters 2006]'s Tables 2 to 5.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultTable {
    /// What is said of all rows.
    pub facts: TableFacts,
    /// The rows.
    pub rows: Vec<ResultRow>,
    /// Whether response times were worked out from the I/Os outstanding (Little's law) rather than
    /// measured.
    pub latency_derived: bool,
}

/// Names and values in their order: title, source, host, ...
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableFacts(pub Vec<(String, String)>);

impl TableFacts {
    /// A fact by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(why: &str) -> String {
        let record = PointRecord {
            format: FORMAT,
            point: PointKey { block_bytes: 4096, read_percent: 100, random_percent: 50 },
            environment: "native".into(),
            repetition: 2,
            started_unix_ns: 1,
            status: PointStatus::Unavailable { why: why.into() },
        };
        serde_json::to_string(&record).unwrap() + "\n"
    }

    #[test]
    fn whole_lines_come_back() {
        let text = line("a") + &line("b");
        let (records, whole) = parse_records::<PointRecord>(&text).unwrap();
        assert_eq!((records.len(), whole), (2, text.len()));
        assert_eq!(records[1].status, PointStatus::Unavailable { why: "b".into() });
        assert_eq!(records[0].histogram_tag(), "native/b4096-r100-x50/2");
    }

    #[test]
    fn a_torn_last_line_is_passed_over_and_measured() {
        let first = line("a");
        let torn = first.clone() + &line("b")[..20];
        let (records, whole) = parse_records::<PointRecord>(&torn).unwrap();
        assert_eq!((records.len(), whole), (1, first.len()));
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error_with_its_number() {
        let text = line("a") + "{nonsense\n" + &line("b");
        assert_eq!(
            parse_records::<PointRecord>(&text).unwrap_err().to_string().split(':').next(),
            Some("line 2 is damaged")
        );
    }

    #[test]
    fn a_newer_format_is_refused() {
        let text = line("a").replace("\"format\":1", "\"format\":99");
        assert!(matches!(parse_records::<PointRecord>(&text), Err(RecordError::TooNew { found: 99, .. })));
    }

    #[test]
    fn drift_is_suspect_only_beyond_its_uncertainty() {
        let check = |drift_ppm, uncertainty_ppm| ClockCheck { drift_ppm, uncertainty_ppm }.is_suspect();
        assert!(check(-15_000.0, 500.0));
        assert!(!check(15_000.0, 6_000.0));
        assert!(!check(200.0, 10.0));
    }
}
