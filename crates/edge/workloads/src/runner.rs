//! The seam: what a kind of workload must be able to do.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;
use virtbench_engine::{Control, monotonic_ns};
use virtbench_workload::WorkloadError;

use crate::sheet::Sheet;

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
