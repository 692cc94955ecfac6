//! What a classic workload did on one machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;
use virtbench_workload::{Workload, WorkloadSpec};

use crate::footprint::Footprint;
use crate::outcome::{Interval, LoadOutcome, TakenHistogram};

/// Which way a figure should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better, such as throughput.
    Higher,
    /// Less is better, such as time.
    Lower,
    /// It explains, and is neither good nor bad, such as idle time.
    Neither,
}

/// One figure, with a sample for each run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// What it is of, such as `triad` or `compress idle`; unique within an outcome.
    pub name: String,
    /// Its unit, such as `B/s`, `operations/min`, `%`.
    pub unit: String,
    /// Which way it should go.
    pub better: Better,
    /// Run by run; runs that were cut before this was measured are left out.
    pub samples: Vec<f64>,
    /// Mean of the samples.
    pub mean: f64,
    /// Standard deviation of the samples (n - 1); null with fewer than two.
    pub stddev: Option<f64>,
}

impl Metric {
    /// A figure from its samples; nothing without any.
    #[must_use]
    pub fn new(name: &str, unit: &str, better: Better, samples: Vec<f64>) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let stddev = (samples.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        Some(Self { name: name.to_owned(), unit: unit.to_owned(), better, samples, mean, stddev })
    }
}

/// How a command ended, and what it said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandEnd {
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// What it printed last, on either stream.
    pub output: String,
    /// How much it printed in all, in bytes.
    pub output_bytes: u64,
}

impl CommandEnd {
    /// How it ended, in words, where it did not end well.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        if self.timed_out {
            return Some("was ended by its time limit".into());
        }
        match (self.exit_code, self.signal) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("ended with exit code {code}")),
            (None, signal) => Some(format!("ended by signal {}", signal.unwrap_or(0))),
        }
    }
}

/// The outcome of one classic workload on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadOutcome {
    /// The figures; the first stands for the whole.
    pub metrics: Vec<Metric>,
    /// Runs that were finished while measuring.
    pub runs: u32,
    /// Operations completed while measuring, also in runs that were cut.
    pub operations: u64,
    /// Bytes they moved, where they move any.
    pub bytes: u64,
    /// Latency of operations in nanoseconds, where it was recorded.
    pub latency_ns: Option<LatencySummary>,
    /// Latencies of all operations: an HdrHistogram, compressed V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Operations that failed, or gave a wrong result.
    pub errors: u64,
    /// Failed operations by what went wrong.
    pub error_kinds: BTreeMap<String, u64>,
    /// How long was really measured, in nanoseconds of the measuring machine's clock.
    pub elapsed_ns: u64,
    /// Whether it was stopped, or ran into its limit, before its runs or its time were over.
    pub interrupted: bool,
    /// Threads or clients that worked.
    pub threads: u32,
    /// CPU time the process used while measuring, in nanoseconds (user, system), by the measuring
    /// machine's own accounts.
    pub own_cpu_ns: [u64; 2],
    /// Time that a hypervisor took from the measuring machine's processors, all summed, in
    /// nanoseconds; null where it does not say.
    pub steal_ns: Option<u64>,
    /// What its machine did meanwhile, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
    /// How a command ended, where the workload is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandEnd>,
    /// The series. Its intervals count from the moment for which the start was agreed upon, so that
    /// those of machines that were started together can be laid side by side.
    pub intervals: Vec<Interval>,
    /// The workload.
    pub spec: WorkloadSpec,
    /// What a reader should know, such as that a page cache could not be emptied.
    pub notes: Vec<String>,
}

impl WorkloadOutcome {
    /// How much was done in a second, whatever the unit: operations of work on files, else the workload's leading figure. Nothing where
    /// that has no sample.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        match self.spec.workload {
            Workload::Files(_) if self.elapsed_ns > 0 => {
                Some(self.operations as f64 / (self.elapsed_ns as f64 / 1e9))
            }
            Workload::Files(_) => None,
            Workload::Memory(_) | Workload::Cpu(_) | Workload::System(_) | Workload::Command(_) => {
                self.metrics.first().map(|metric| metric.mean)
            }
        }
    }

    /// The figure of this name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Share of the time in which a thread had no processor, in percent of all threads' time ([Multi-VM 2010],
    /// Sourced 2, less the machine's other processes).
    #[must_use]
    pub fn idle_percent(&self) -> f64 {
        idle_percent(self.own_cpu_ns[0] + self.own_cpu_ns[1], self.threads, self.elapsed_ns)
    }
}

/// Share of the time of `threads` that `cpu_ns` does not account for, in percent.
#[must_use]
pub fn idle_percent(cpu_ns: u64, threads: u32, elapsed_ns: u64) -> f64 {
    let all_ns = f64::from(threads) * elapsed_ns as f64;
    if all_ns > 0.0 { (100.0 * (1.0 - cpu_ns as f64 / all_ns)).clamp(0.0, 100.0) } else { 0.0 }
}

/// What came of a job ([`virtbench_workload::JobSpec`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Of a load.
    Load(Box<LoadOutcome>),
    /// Of a classic workload.
    Workload(Box<WorkloadOutcome>),
}

impl JobOutcome {
    /// How long was measured, in nanoseconds of the measuring machine's clock.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        match self {
            Self::Load(load) => load.elapsed_ns,
            Self::Workload(workload) => workload.elapsed_ns,
        }
    }

    /// Whether it was stopped, or ran into its limit, before it was over.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Load(load) => load.interrupted,
            Self::Workload(workload) => workload.interrupted,
        }
    }

    /// User and system CPU time of what applied it, in nanoseconds.
    #[must_use]
    pub fn own_cpu_ns(&self) -> [u64; 2] {
        match self {
            Self::Load(load) => load.own_cpu_ns,
            Self::Workload(workload) => workload.own_cpu_ns,
        }
    }

    /// Operations that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        match self {
            Self::Load(load) => load.errors,
            Self::Workload(workload) => workload.errors,
        }
    }

    /// Response times of all operations, in nanoseconds, where they were recorded.
    #[must_use]
    pub fn latency_ns(&self) -> Option<LatencySummary> {
        match self {
            Self::Load(load) => load.total.latency_ns,
            Self::Workload(workload) => workload.latency_ns,
        }
    }

    /// Mean response time, in nanoseconds, where it was recorded.
    #[must_use]
    pub fn response_ns(&self) -> Option<f64> {
        self.latency_ns().map(|latency| latency.mean)
    }

    /// 99th percentile of the response times, in nanoseconds, where they were recorded.
    #[must_use]
    pub fn response_p99_ns(&self) -> Option<f64> {
        self.latency_ns().map(|latency| latency.p99 as f64)
    }

    /// How much was done in a second, whatever the unit: as [`WorkloadOutcome::throughput`] of a workload, operations of a load.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        match self {
            Self::Load(load) => Some(load.total.iops),
            Self::Workload(workload) => workload.throughput(),
        }
    }

    /// The series.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        match self {
            Self::Load(load) => &load.intervals,
            Self::Workload(workload) => &workload.intervals,
        }
    }

    /// Time that a hypervisor took from the machine's processors, in nanoseconds, where it is known.
    #[must_use]
    pub fn steal_ns(&self) -> Option<u64> {
        if let Self::Workload(workload) = self { workload.steal_ns } else { None }
    }

    /// Takes the histograms out under `tag`.
    pub(crate) fn take_histograms(&mut self, tag: &str, started_unix_ns: u64) -> Vec<TakenHistogram> {
        match self {
            Self::Load(load) => load.take_histograms(tag, started_unix_ns),
            Self::Workload(workload) => {
                let length_ns = workload.elapsed_ns;
                let taken = workload.histogram.take();
                let taken = taken.map(|histogram| TakenHistogram {
                    tag: format!("{tag}/all"),
                    started_unix_ns,
                    length_ns,
                    histogram,
                });
                taken.into_iter().collect()
            }
        }
    }

    /// The load's outcome, if it is one.
    #[must_use]
    pub fn load(self) -> Option<LoadOutcome> {
        if let Self::Load(load) = self { Some(*load) } else { None }
    }

    /// The workload's outcome, if it is one.
    #[must_use]
    pub fn workload(self) -> Option<WorkloadOutcome> {
        if let Self::Workload(workload) = self { Some(*workload) } else { None }
    }
}

/// One number that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was measured.
    pub name: String,
    /// Its unit: `B/s`, `1/s`, `ns`, `%`, or another one.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// How much it was; without end (`null` in JSON) where nothing was completed and less is better. It is a number.
    #[serde(with = "endless")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub value: f64,
}

/// JSON has no number without end. What is no number at all is not written, for nothing could be told from it.
mod endless {
    use serde::ser::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_nan() || *value == f64::NEG_INFINITY {
            return Err(S::Error::custom(format!("a sample is {value}, which is no number")));
        }
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

impl Sample {
    /// A number in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self { name: name.into(), unit: unit.to_owned(), better, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_give_mean_and_standard_deviation() {
        let metric = Metric::new("triad", "B/s", Better::Higher, vec![2.0, 4.0, 6.0]).unwrap();
        assert_eq!((metric.mean, metric.stddev), (4.0, Some(2.0)));
        assert_eq!(Metric::new("triad", "B/s", Better::Higher, vec![2.0]).unwrap().stddev, None);
        assert!(Metric::new("triad", "B/s", Better::Higher, Vec::new()).is_none());
    }

    #[test]
    fn idle_time_is_what_no_thread_used() {
        assert_eq!(idle_percent(1_500, 2, 1_000), 25.0);
        assert_eq!(idle_percent(3_000, 2, 1_000), 0.0);
        assert_eq!(idle_percent(0, 0, 0), 0.0);
    }

    #[test]
    fn a_time_without_end_is_written_and_read_and_what_is_no_number_is_not_written() {
        let sample = Sample::new("latency", "ns", Better::Lower, f64::INFINITY);
        let text = serde_json::to_string(&sample).unwrap();
        assert!(text.contains("\"value\":null"), "{text}");
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        for value in [f64::NAN, f64::NEG_INFINITY] {
            assert!(serde_json::to_string(&Sample { value, ..sample.clone() }).is_err());
        }
    }
}
