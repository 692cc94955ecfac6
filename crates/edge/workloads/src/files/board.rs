//! The result of a load on files, in parts: each a test, or a kind of operation.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use virtbench_engine::monotonic_ns;
use virtbench_units::{LatencyRecorder, format_bytes};
use virtbench_workload::files::FileLoadError;

/// Operations that a thread keeps to itself before it takes the lock.
const BATCH: usize = 256;

/// A test, or a kind of operation.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Operations completed without error.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations that failed, or that ended otherwise than they should.
    pub errors: u64,
    /// How long it was measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of its threads in nanoseconds, user and system, where it was measured for this part.
    pub cpu_ns: Option<[u64; 2]>,
    /// Response times.
    pub latency: LatencyRecorder,
}

impl Part {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            operations: 0,
            bytes: 0,
            errors: 0,
            elapsed_ns: 0,
            cpu_ns: None,
            latency: LatencyRecorder::new(),
        }
    }

    fn seconds(&self) -> f64 {
        (self.elapsed_ns as f64 / 1e9).max(1e-9)
    }

    /// Operations per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds()
    }

    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }
}

/// Why a load ended before its time. What was measured until then is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum Ended {
    /// It was stopped from outside.
    #[error("interrupted")]
    Interrupted,
    /// The file system has no room left.
    #[error("the file system filled up at {path}: lower --size or --files, or give it more room")]
    Full { path: String },
    /// A file system that fails.
    #[error("{what} failed: {why}")]
    Failed {
        /// What was done.
        what: String,
        /// What the operating system said.
        why: String,
    },
    /// A thread that did not come back.
    #[error("the file system has not answered for {seconds} s")]
    Stalled {
        /// How long.
        seconds: u64,
    },
}

impl Ended {
    /// What an error of the operating system means for the run.
    pub(crate) fn by(what: &str, path: &Path, error: &io::Error) -> Self {
        if is_full(error) {
            return Self::Full { path: path.display().to_string() };
        }
        Self::Failed { what: format!("{what} {}", path.display()), why: error.to_string() }
    }
}

#[derive(Debug, Default)]
struct Inner {
    parts: Vec<Part>,
    error_kinds: BTreeMap<String, u64>,
    ended: Option<Ended>,
    cpu_ns: [u64; 2],
}

/// Where threads write what they did.
#[derive(Debug)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
    stop: AtomicBool,
    begin_ns: u64,
    end_ns: u64,
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Board {
    /// A board for kinds of operations of these names, measured between two moments of the clock.
    pub(crate) fn new(names: &[&str], begin_ns: u64, end_ns: u64) -> Self {
        let inner = Inner { parts: names.iter().map(|name| Part::new(name)).collect(), ..Inner::default() };
        Self {
            inner: Mutex::new(inner),
            stop: AtomicBool::new(false),
            begin_ns,
            end_ns,
            operations: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the load: the first reason counts.
    pub(crate) fn end(&self, why: Ended) {
        self.inner().ended.get_or_insert(why);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the load without a reason to complain of.
    pub(crate) fn finish(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether threads shall come to their end, now that the clock shows this.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns || self.stop.load(Ordering::Relaxed)
    }

    /// Operations completed so far while measuring, and the bytes they moved.
    pub(crate) fn totals(&self) -> [u64; 2] {
        [&self.operations, &self.bytes].map(|total| total.load(Ordering::Relaxed))
    }

    /// A thread's own page.
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally { board: self, pending: Vec::with_capacity(BATCH), begin_cpu: None }
    }

    /// What stands on the board, once all threads are through: parts that did something, the series, why
    /// it ended early, errors by their names, the CPU time of all threads.
    pub(crate) fn take(&self) -> Report {
        let mut inner = self.inner();
        let inner = std::mem::take(&mut *inner);
        let elapsed_ns = monotonic_ns().min(self.end_ns).saturating_sub(self.begin_ns);
        let mut parts = inner.parts;
        parts.retain(|part| part.operations + part.errors > 0);
        for part in &mut parts {
            part.elapsed_ns = elapsed_ns;
        }
        Report { parts, elapsed_ns, ended: inner.ended, error_kinds: inner.error_kinds, cpu_ns: inner.cpu_ns }
    }
}

/// The result of a load on files.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its parts, in their order.
    pub parts: Vec<Part>,
    /// How long was measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// Why it ended before its time, if it did.
    pub ended: Option<Ended>,
    /// Failed operations by the error's name.
    pub error_kinds: BTreeMap<String, u64>,
    /// CPU time of its threads while it was measured, in nanoseconds: user, system.
    pub cpu_ns: [u64; 2],
}

#[derive(Debug, Clone, Copy)]
struct Completed {
    kind: usize,
    latency_ns: u64,
    bytes: u64,
}

/// What a thread did and has not written on the board yet.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    board: &'a Board,
    pending: Vec<Completed>,
    begin_cpu: Option<[u64; 2]>,
}

impl Tally<'_> {
    /// An operation of this kind was completed. Outside the measuring time it does not count.
    pub(crate) fn done(&mut self, kind: usize, at_ns: u64, latency_ns: u64, bytes: u64) {
        if at_ns < self.board.begin_ns || at_ns > self.board.end_ns {
            return;
        }
        self.board.operations.fetch_add(1, Ordering::Relaxed);
        self.board.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.begin_cpu.is_none() {
            self.begin_cpu = Some(virtbench_engine::thread_cpu_ns());
        }
        self.pending.push(Completed { kind, latency_ns, bytes });
        if self.pending.len() == BATCH {
            self.flush();
        }
    }

    /// An operation of this kind failed.
    pub(crate) fn failed(&mut self, kind: usize, error: &io::Error) {
        let mut inner = self.board.inner();
        inner.parts[kind].errors += 1;
        *inner.error_kinds.entry(format!("{:?}", error.kind())).or_default() += 1;
    }

    fn flush(&mut self) {
        let mut inner = self.board.inner();
        for done in self.pending.drain(..) {
            let part = &mut inner.parts[done.kind];
            part.operations += 1;
            part.bytes += done.bytes;
            part.latency.record(done.latency_ns);
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.flush();
        if let Some(begin) = self.begin_cpu {
            let now = virtbench_engine::thread_cpu_ns();
            let mut inner = self.board.inner();
            for (sum, (now, begin)) in inner.cpu_ns.iter_mut().zip(now.into_iter().zip(begin)) {
                *sum += now.saturating_sub(begin);
            }
        }
    }
}

/// Why a load on files could not be begun. Each message says what to do next.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The load makes no sense.
    #[error(transparent)]
    Load(#[from] FileLoadError),
    /// The folder it would work in holds something else.
    #[error(
        "{path} exists and was not made by virtbench: move it away, or name another directory",
        path = .0.display()
    )]
    Foreign(PathBuf),
    /// Another run works in it.
    #[error("{path} is in use by another run: wait for it, or name another directory", path = .0.display())]
    Busy(PathBuf),
    /// The file system has no room for its files.
    #[error(
        "no room for {} at {path}: {} are free; lower --size or --files, or name another directory",
        format_bytes(*wanted_bytes), format_bytes(*free_bytes), path = path.display()
    )]
    Full {
        /// The directory.
        path: PathBuf,
        /// What the files need, in bytes.
        wanted_bytes: u64,
        /// What is free, in bytes.
        free_bytes: u64,
    },
    /// The system has not what the load needs.
    #[error("{0}")]
    Lacking(&'static str),
    /// It was interrupted before anything was measured.
    #[error("interrupted while the files were being made; nothing is left of them")]
    Interrupted,
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is no memory or thread for it.
    #[error("cannot get {what}: {source}")]
    Resource {
        /// What was asked for.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl FilesError {
    /// For `map_err`: an operating-system error while doing `action` to `path`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// Whether the operating system says that the file system, or a quota, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_measuring_time_counts_and_every_operation_in_it_does() {
        let board = Board::new(&["a", "b", "idle"], 1_000, 5_000);
        let mut tally = board.tally();
        for (kind, at_ns) in [(0, 999), (0, 1_000), (1, 3_500), (1, 5_000), (1, 5_001)] {
            tally.done(kind, at_ns, 10, 4096);
        }
        tally.failed(0, &io::Error::from_raw_os_error(libc::EIO));
        drop(tally);
        assert_eq!(board.totals(), [3, 3 * 4096]);
        let report = board.take();
        let counts: Vec<_> = report.parts.iter().map(|p| (p.name.as_str(), p.operations, p.errors)).collect();
        assert_eq!(counts, [("a", 1, 1), ("b", 2, 0)]);
        assert_eq!(report.parts[1].latency.count(), 2);
    }

    #[test]
    fn the_first_reason_to_end_is_kept() {
        let board = Board::new(&[], 0, u64::MAX);
        assert!(!board.is_over(5));
        board.end(Ended::by("writing", Path::new("/x"), &io::Error::from_raw_os_error(libc::ENOSPC)));
        board.end(Ended::Interrupted);
        assert!(board.is_over(5));
        assert_eq!(board.take().ended, Some(Ended::Full { path: "/x".into() }));
    }
}
