//! What this machine does while an application runs on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use virtbench_record::Footprint;

#[cfg(unix)]
use crate::crossings::{CallCounters, crossings, disk_operations};
#[cfg(unix)]
use crate::sampler::Sampler;
#[cfg(windows)]
use crate::windows::{CallCounters, Sampler, crossings, disk_operations};
use crate::{machine_cpu_ns, machine_io_wait_ns, thread_cpu_ns};

/// Whose time does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOut {
    /// Everybody's counts.
    Nobody,
    /// That of the thread that asks.
    ThisThread,
}

/// What is looked at besides the processors' time, and costs something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The kernel's functions, by samples.
    pub functions: bool,
    /// System calls, by their number.
    pub calls: bool,
}

/// A machine that is looked at, from its beginning on.
#[derive(Debug)]
pub struct Look {
    begun: Instant,
    own: bool,
    sampler: Option<Result<RefCell<Sampler>, String>>,
    calls: Option<Result<CallCounters, String>>,
}

impl Look {
    /// Begins with what is wanted. [`LeaveOut::ThisThread`] leaves out the processor time of
    /// the calling thread, whose looks are then all to be taken from it.
    #[must_use]
    pub fn new(wanted: Wanted, leave_out: LeaveOut) -> Self {
        let sampler = wanted.functions.then(|| Sampler::start().map(RefCell::new));
        let calls = wanted.calls.then(CallCounters::start);
        Self { begun: Instant::now(), own: leave_out == LeaveOut::Nobody, sampler, calls }
    }

    /// What is wanted and cannot be had, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let functions = self.sampler.as_ref().and_then(|sampler| sampler.as_ref().err());
        let calls = self.calls.as_ref().and_then(|calls| calls.as_ref().err());
        let said = functions.map(|why| format!("the kernel's functions are not sampled: {why}"));
        said.or_else(|| calls.map(|why| format!("system calls are not counted: {why}")))
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
        Some(Footprint {
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).ok()?,
            cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(own[mode])),
            copied_bytes,
            functions: BTreeMap::new(),
            io_wait_ns: machine_io_wait_ns(),
            disk_operations: disk_operations(),
            crossings: crossings(self.calls.as_ref().and_then(|calls| calls.as_ref().ok())),
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
            io_wait_ns: grown(earlier.io_wait_ns, later.io_wait_ns),
            disk_operations: grown(earlier.disk_operations, later.disk_operations),
            crossings: later.crossings.zip(earlier.crossings).map(|(now, then)| now.since(&then)),
        }
    }

    /// Kernel time by function since the beginning, or since [`forget`](Self::forget), in nanoseconds; nothing where nothing
    /// is sampled. The first time it takes as long as reading the names of all functions.
    pub(crate) fn functions(&self) -> BTreeMap<String, u64> {
        self.sampler().map_or_else(BTreeMap::new, |sampler| sampler.borrow_mut().read())
    }
}

/// By how much, where both are known.
fn grown(earlier: Option<u64>, later: Option<u64>) -> Option<u64> {
    later.zip(earlier).map(|(now, then)| now.saturating_sub(then))
}
