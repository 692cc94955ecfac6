//! Tests that follow one another, each timed as a whole and operation by operation.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use virtbench_engine::{Buffers, monotonic_ns, thread_clock_ns, thread_cpu_ns};
use virtbench_units::Random;
use virtbench_workload::files::{CacheControl, FileSpec};

use crate::files::board::{Ended, Part, Report};
use crate::files::calls;
use crate::files::folder::Folder;
use crate::files::threads::Outside;

/// Tests, one after the other.
pub(crate) struct Trials<'a> {
    spec: &'a FileSpec,
    folder: &'a Folder,
    reach: Reach,
    outside: &'a Outside<'a>,
    parts: Vec<Part>,
    ended: Option<Ended>,
    pub(crate) random: Random,
}

/// A test that is running.
pub(crate) struct Trial<'a> {
    part: Part,
    outside: &'a Outside<'a>,
    /// Time that went into making data, in nanoseconds.
    making_ns: u64,
    /// Processor time of that, in nanoseconds.
    making_cpu_ns: u64,
}

impl<'a> Trial<'a> {
    /// Makes what is to be written next. That takes no time of the test: the tools that these tests come
    /// from write the same block again and again, and what it takes to make a fresh one says nothing of
    /// a file system.
    pub(crate) fn make(&mut self, make: impl FnOnce()) {
        let (begin_ns, begin_cpu_ns) = (monotonic_ns(), thread_clock_ns());
        make();
        self.making_cpu_ns += thread_clock_ns() - begin_cpu_ns;
        self.making_ns += monotonic_ns() - begin_ns;
    }

    /// Does one operation that moves `bytes`, and times it; an error says that the test is stopped.
    pub(crate) fn operate(&mut self, bytes: u64, operate: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.check()?;
        let begin_ns = monotonic_ns();
        operate()?;
        self.part.latency.record(monotonic_ns() - begin_ns);
        self.count(1, bytes);
        Ok(())
    }

    /// Counts operations that are too short to be timed.
    pub(crate) fn count(&mut self, operations: u64, bytes: u64) {
        self.part.operations += operations;
        self.part.bytes += bytes;
        (self.outside.count)(operations, bytes);
    }

    /// An error if the test is stopped.
    pub(crate) fn check(&self) -> io::Result<()> {
        if (self.outside.is_over)() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Who can stop tests, for other threads to look at.
    pub(crate) fn outside(&self) -> &'a Outside<'a> {
        self.outside
    }

    /// Adds what another thread did.
    pub(crate) fn merge(&mut self, other: &Part) {
        self.count(other.operations, other.bytes);
        self.part.latency.merge(&other.latency);
        let cpu = self.part.cpu_ns.get_or_insert([0, 0]);
        for (sum, more) in cpu.iter_mut().zip(other.cpu_ns.unwrap_or_default()) {
            *sum += more;
        }
    }
}

impl<'a> Trials<'a> {
    pub(crate) fn new(
        spec: &'a FileSpec,
        seed: u64,
        folder: &'a Folder,
        reach: Reach,
        outside: &'a Outside<'a>,
    ) -> Self {
        let random = Random::new(seed);
        Self { spec, folder, reach, outside, parts: Vec::new(), ended: None, random }
    }

    /// The folder that tests work in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the page cache is bypassed.
    pub(crate) fn direct(&self) -> bool {
        self.spec.cache == CacheControl::Direct
    }

    /// Buffers for this load.
    pub(crate) fn buffers(&mut self, bytes: u64) -> Result<Buffers, Ended> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Buffers::new(1, bytes, self.random.next_u64())
            .map_err(|error| Ended::Failed { what: "memory for buffers".into(), why: error.to_string() })
    }

    /// Opens the large file, new or as it is.
    pub(crate) fn open(&self, path: &Path, new: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(new).truncate(new);
        if self.direct() {
            calls::bypass_cache(&mut options);
        }
        options.open(path)
    }

    /// Brings the cache to its state and makes a test. What it did is kept also if it fails.
    ///
    /// # Errors
    /// Why all tests are to end.
    pub(crate) fn test(
        &mut self,
        name: &str,
        path: &Path,
        work: impl FnOnce(&mut Trial<'a>) -> io::Result<()>,
    ) -> Result<(), Ended> {
        settle(self.folder.path(), self.spec.cache, self.reach)
            .map_err(|error| Ended::by("syncing", self.folder.path(), &error))?;
        let mut trial =
            Trial { part: Part::new(name), outside: self.outside, making_ns: 0, making_cpu_ns: 0 };
        let (begin_ns, begin_cpu) = (monotonic_ns(), thread_cpu_ns());
        let result = work(&mut trial);
        let end_cpu = thread_cpu_ns();
        let (making_ns, making_cpu_ns) = (trial.making_ns, trial.making_cpu_ns);
        let mut part = trial.part;
        part.elapsed_ns = (monotonic_ns() - begin_ns).saturating_sub(making_ns);
        let others = part.cpu_ns.unwrap_or_default();
        let used = |side: usize| end_cpu[side].saturating_sub(begin_cpu[side]) + others[side];
        part.cpu_ns = Some(less([used(0), used(1)], making_cpu_ns));
        part.errors = u64::from(result.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted));
        if part.operations + part.errors > 0 {
            self.parts.push(part);
        }
        result.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ended::Interrupted,
            _ => Ended::by(name, path, &error),
        })
    }

    /// Ends the tests before their end.
    pub(crate) fn end(&mut self, why: Ended) {
        self.ended.get_or_insert(why);
    }

    /// Their result.
    pub(crate) fn finish(self) -> Report {
        let sum = |side: usize| self.parts.iter().filter_map(|part| part.cpu_ns).map(|cpu| cpu[side]).sum();
        Report {
            elapsed_ns: self.parts.iter().map(|part| part.elapsed_ns).sum(),
            cpu_ns: [sum(0), sum(1)],
            parts: self.parts,
            ended: self.ended,
            error_kinds: std::collections::BTreeMap::new(),
        }
    }
}

/// User and system time less that of making data, all in nanoseconds. Making is user code, but the kernel splits short times
/// by chance: what cannot be taken from the user's side is taken from the other, and their sum is right.
fn less(used: [u64; 2], making: u64) -> [u64; 2] {
    let rest = (used[0] + used[1]).saturating_sub(making);
    let user = used[0].saturating_sub(making).min(rest);
    [user, rest - user]
}

/// How much of the page cache may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All of it: nobody else uses this machine (a guest of ours).
    Machine,
    /// Only pages of our own files.
    OwnFiles,
}

impl Reach {
    /// What to say of it beside the figures.
    #[must_use]
    pub fn note(self, cache: CacheControl) -> String {
        match (cache, self) {
            (CacheControl::Keep, _) => {
                "the page cache is left as it is: what fits into memory is measured there"
            }
            (CacheControl::Direct, _) => return format!("the page cache is bypassed ({})", calls::DIRECT),
            (CacheControl::Drop, Self::Machine) => {
                "before each phase everything is synced and the page cache dropped, with names and attributes"
            }
            (CacheControl::Drop, Self::OwnFiles) => {
                "before each phase the files are synced and their pages dropped; names and attributes stay cached"
            }
        }
        .to_owned()
    }
}

/// Brings all files under `folder` to the disk and, if asked, out of the cache.
pub(crate) fn settle(folder: &Path, cache: CacheControl, reach: Reach) -> io::Result<()> {
    if cache == CacheControl::Keep {
        return Ok(());
    }
    match reach {
        Reach::Machine => calls::empty_cache(),
        Reach::OwnFiles => calls::settle_files(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_making_is_left_out_on_whichever_side_it_was_counted() {
        assert_eq!(less([300, 100], 250), [50, 100]);
        assert_eq!(less([100, 300], 250), [0, 150]);
        assert_eq!(less([300, 0], 250), [50, 0]);
        assert_eq!(less([100, 100], 250), [0, 0]);
    }
}
