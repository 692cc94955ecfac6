//! What this machine does while an application runs on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use virtbench_record::Footprint;

#[cfg(unix)]
use crate::crossings::CrossingCounters;
use crate::disks::{Disk, disk_counts, io_stalls};
#[cfg(unix)]
use crate::sampler::Sampler;
#[cfg(windows)]
use crate::windows::{CrossingCounters, Sampler};
use crate::{machine_cpu_ns, thread_cpu_ns};

/// Whose time does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOut {
    /// Everybody's counts.
    Nobody,
    /// That of the thread that asks.
    ThisThread,
}

/// What a machine is looked at with besides its accounts, and what that slows down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Instruments {
    /// Samples of the kernel's functions.
    pub functions: bool,
    /// Counters of system calls and of what else enters the kernel.
    pub crossings: bool,
}

/// A machine that is looked at, from its beginning on.
#[derive(Debug)]
pub struct Look {
    begun: Instant,
    own: bool,
    disk: Option<Disk>,
    sampler: Option<Result<RefCell<Sampler>, String>>,
    crossings: Option<Result<CrossingCounters, String>>,
}

impl Look {
    /// Begins with these instruments. [`LeaveOut::ThisThread`] leaves out the processor time of
    /// the calling thread, whose looks are then all to be taken from it.
    #[must_use]
    pub fn new(instruments: Instruments, leave_out: LeaveOut) -> Self {
        let sampler = instruments.functions.then(|| Sampler::start().map(RefCell::new));
        let crossings = instruments.crossings.then(CrossingCounters::start);
        Self { begun: Instant::now(), own: leave_out == LeaveOut::Nobody, disk: None, sampler, crossings }
    }

    /// Counts what this disk does alone, in place of all disks, where there is one.
    #[must_use]
    pub fn of_disk(mut self, disk: Option<Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Which instrument cannot be had, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let functions = self.sampler.as_ref().and_then(|sampler| sampler.as_ref().err());
        let crossings = self.crossings.as_ref().and_then(|counters| counters.as_ref().err());
        let said = functions.map(|why| format!("the kernel's functions are not sampled: {why}"));
        said.or_else(|| crossings.map(|why| format!("system calls are not counted: {why}")))
    }

    fn sampler(&self) -> Option<&RefCell<Sampler>> {
        self.sampler.as_ref()?.as_ref().ok()
    }

    /// What the machine has done so far, for [`between`](Self::between); nothing where it does not say. How many bytes system
    /// calls copied the caller knows.
    ///
    /// Samples are kept for two minutes at least; look as often as that.
    #[must_use]
    pub fn take(&self, copied_bytes: u64) -> Option<Footprint> {
        if let Some(sampler) = self.sampler() {
            sampler.borrow_mut().drain();
        }
        let own = if self.own { [0, 0] } else { thread_cpu_ns() };
        let cpu = machine_cpu_ns()?;
        let counters = self.crossings.as_ref().and_then(|counters| counters.as_ref().ok());
        Some(Footprint {
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).ok()?,
            cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(own[mode])),
            copied_bytes,
            functions: BTreeMap::new(),
            disks: disk_counts(self.disk.as_ref()),
            stalls: io_stalls(),
            crossings: counters.and_then(CrossingCounters::read),
            translated_ns: None,
        })
    }

    /// Forgets what was sampled so far.
    pub fn forget(&self) {
        if let Some(sampler) = self.sampler() {
            sampler.borrow_mut().forget();
        }
    }

    /// What came between two looks, with the functions that were sampled.
    #[must_use]
    pub fn between(&self, earlier: &Footprint, later: &Footprint) -> Footprint {
        Footprint {
            elapsed_ns: later.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            cpu_ns: [0, 1].map(|mode| later.cpu_ns[mode].saturating_sub(earlier.cpu_ns[mode])),
            copied_bytes: later.copied_bytes.saturating_sub(earlier.copied_bytes),
            functions: self.functions(),
            disks: later.disks.zip(earlier.disks).map(|(now, then)| now.since(&then)),
            stalls: later.stalls.zip(earlier.stalls).map(|(now, then)| now.since(&then)),
            crossings: later.crossings.zip(earlier.crossings).map(|(now, then)| now.since(&then)),
            translated_ns: None,
        }
    }

    /// Kernel time by function since the beginning, or since [`forget`](Self::forget), in nanoseconds; nothing where nothing
    /// is sampled. The first time it takes as long as reading the names of all functions.
    pub(crate) fn functions(&self) -> BTreeMap<String, u64> {
        self.sampler().map_or_else(BTreeMap::new, |sampler| sampler.borrow_mut().read())
    }
}
