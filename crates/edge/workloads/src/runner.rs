//! The seam: what a kind of workload must be able to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use thiserror::Error;
use virtbench_engine::{Control, monotonic_ns};
use virtbench_record::{Better, CommandEnd, Metric};
use virtbench_units::LatencyRecorder;
use virtbench_workload::WorkloadError;

/// Where a workload has its storage, if it needs any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// A folder or file of this machine.
    Path(PathBuf),
    /// A disk that was made for this, by its device node; it may be formatted.
    Disk(PathBuf),
}

/// A workload that is ready to run, as often as wanted.
pub trait Runner: Send {
    /// Threads or clients that work.
    fn threads(&self) -> u32;

    /// Files whose pages may be dropped from the page cache before a run, where the whole cache cannot.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Runs once. Samples go to `sheet`, operations in flight are counted on `watch`; soon after
    /// [`Watch::is_over`] it returns, and leaves out what was not measured whole. What it took that long
    /// for one operation to see is for the runner to bound.
    ///
    /// # Errors
    /// It cannot go on at all. Operations that fail are counted on the sheet instead.
    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError>;
}

/// Says when to end, and counts what is done. Shared by all threads of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    control: &'a Control,
    operations: &'a AtomicU64,
    bytes: &'a AtomicU64,
    deadline_ns: u64,
}

impl<'a> Watch<'a> {
    /// Ends when `control` is stopped or the monotonic clock shows `deadline_ns`.
    pub(crate) fn new(
        control: &'a Control,
        operations: &'a AtomicU64,
        bytes: &'a AtomicU64,
        deadline_ns: u64,
    ) -> Self {
        Self { control, operations, bytes, deadline_ns }
    }

    /// Whether it is time to end: stopped, or the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.control.is_stopped() || monotonic_ns() >= self.deadline_ns
    }

    /// Ends the workload: another round would be in vain.
    pub fn end(&self) {
        self.control.stop();
    }

    /// The monotonic clock when the time is over, in nanoseconds.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Counts operations that were completed, and the bytes they moved.
    pub fn count(&self, operations: u64, bytes: u64) {
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Why a workload could not be run. Operations that fail are not among them: they are counted.
#[derive(Debug, Error)]
pub enum RunError {
    /// It makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// It does not fit this machine.
    #[error("{0}")]
    Misfit(String),
    /// The storage it was given cannot be used.
    #[error("{0}")]
    Storage(String),
    /// The kernel refused something.
    #[error("{what}: {source}")]
    Resource {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl RunError {
    /// The kernel refused `what`.
    #[must_use]
    pub fn resource(what: impl Into<String>, source: io::Error) -> Self {
        Self::Resource { what: what.into(), source }
    }
}

/// Figures of all runs so far.
#[derive(Debug, Default)]
pub struct Sheet {
    rows: Vec<Row>,
    error_kinds: BTreeMap<String, u64>,
    latency: LatencyRecorder,
    notes: Vec<String>,
    command: Option<CommandEnd>,
}

#[derive(Debug)]
struct Row {
    name: String,
    unit: &'static str,
    better: Better,
    samples: Vec<f64>,
}

/// The most kinds of errors that are told apart.
const MAX_KINDS: usize = 50;

impl Sheet {
    /// Adds a run's sample of a figure. Figures stand in the order in which they first came.
    pub fn sample(&mut self, name: &str, unit: &'static str, better: Better, value: f64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.name == name) {
            row.samples.push(value);
        } else {
            self.rows.push(Row { name: name.to_owned(), unit, better, samples: vec![value] });
        }
    }

    /// As [`sample`](Self::sample), of the figure that stands for the whole and is put first.
    pub fn lead(&mut self, name: &str, unit: &'static str, better: Better, value: f64) {
        self.sample(name, unit, better, value);
        if let Some(place) = self.rows.iter().position(|row| row.name == name) {
            self.rows[..=place].rotate_right(1);
        }
    }

    /// Counts operations that failed, by what went wrong.
    pub fn errors(&mut self, kind: &str, count: u64) {
        let known = self.error_kinds.contains_key(kind) || self.error_kinds.len() < MAX_KINDS;
        let kind = if known { kind } else { "others" };
        *self.error_kinds.entry(kind.to_owned()).or_default() += count;
    }

    /// Adds latencies of operations.
    pub fn latencies(&mut self, latencies: &LatencyRecorder) {
        self.latency.merge(latencies);
    }

    /// Adds something a reader should know, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// How a command ended; the last run's is kept.
    #[cfg_attr(windows, allow(dead_code, reason = "no command runs there"))]
    pub(crate) fn command(&mut self, end: CommandEnd) {
        self.command = Some(end);
    }

    pub(crate) fn take_command(&mut self) -> Option<CommandEnd> {
        self.command.take()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let metric = |row: &Row| Metric::new(&row.name, row.unit, row.better, row.samples.clone());
        self.rows.iter().filter_map(metric).collect()
    }

    pub(crate) fn error_kinds(&self) -> &BTreeMap<String, u64> {
        &self.error_kinds
    }

    pub(crate) fn latency(&self) -> &LatencyRecorder {
        &self.latency
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The threads that are meant: 0 stands for one on each processor.
pub(crate) fn threads_meant(asked: u32) -> u32 {
    if asked > 0 {
        return asked;
    }
    thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// Has a thread do something with each member, all at once, and waits for all.
///
/// # Errors
/// A thread could not be started; those that were are waited for.
pub(crate) fn each<M: Send, T: Send>(
    members: impl IntoIterator<Item = M>,
    act: impl Fn(M) -> T + Sync,
) -> Result<Vec<T>, RunError> {
    let act = &act;
    thread::scope(|scope| {
        let started: Vec<_> = members
            .into_iter()
            .map(|member| thread::Builder::new().spawn_scoped(scope, move || act(member)))
            .collect();
        started
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
                Err(source) => Err(RunError::resource("starting a thread", source)),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_order_and_the_leading_one_is_first() {
        let mut sheet = Sheet::default();
        for value in [1.0, 3.0] {
            sheet.sample("a", "B/s", Better::Higher, value);
            sheet.sample("b", "B/s", Better::Higher, value);
            sheet.lead("score", "operations/min", Better::Higher, value);
        }
        let metrics = sheet.metrics();
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["score", "a", "b"]);
        assert!(metrics.iter().all(|metric| metric.samples == [1.0, 3.0] && metric.mean == 2.0));
    }

    #[test]
    fn kinds_of_errors_are_bounded() {
        let mut sheet = Sheet::default();
        (0..1000).for_each(|kind| sheet.errors(&kind.to_string(), 1));
        assert!(sheet.error_kinds().len() <= MAX_KINDS + 1);
        assert_eq!(sheet.error_kinds().values().sum::<u64>(), 1000);
    }
}
