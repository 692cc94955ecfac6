//! What this machine does while an application runs on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use virtbench_record::Footprint;

#[cfg(unix)]
use crate::sampler::Sampler;
#[cfg(windows)]
use crate::windows::Sampler;
use crate::{machine_cpu_ns, thread_cpu_ns};

/// Whose time does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOut {
    /// Everybody's counts.
    Nobody,
    /// That of the thread that asks.
    ThisThread,
}

/// A machine that is looked at, from its beginning on.
#[derive(Debug)]
pub struct Look {
    begun: Instant,
    own: bool,
    sampler: Result<RefCell<Sampler>, String>,
}

impl Look {
    /// Begins to sample the kernel's functions if `sample` is set. [`LeaveOut::ThisThread`] leaves out the processor time of
    /// the calling thread, whose looks are then all to be taken from it.
    #[must_use]
    pub fn new(sample: bool, leave_out: LeaveOut) -> Self {
        let sampler =
            if sample { Sampler::start().map(RefCell::new) } else { Err("it was not asked for".into()) };
        Self { begun: Instant::now(), own: leave_out == LeaveOut::Nobody, sampler }
    }

    /// Why nothing is sampled, where that is so.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.sampler.as_ref().err().map(String::as_str)
    }

    /// What the machine has done so far, for [`between`](Self::between); nothing where it does not say. How many bytes system
    /// calls copied the caller knows.
    ///
    /// Samples are kept for two minutes at least; look as often as that.
    #[must_use]
    pub fn take(&self, copied_bytes: u64) -> Option<Footprint> {
        if let Ok(sampler) = &self.sampler {
            sampler.borrow_mut().drain();
        }
        let own = if self.own { [0, 0] } else { thread_cpu_ns() };
        let cpu = machine_cpu_ns()?;
        Some(Footprint {
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).ok()?,
            cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(own[mode])),
            copied_bytes,
            functions: BTreeMap::new(),
        })
    }

    /// Forgets what was sampled so far.
    pub fn forget(&self) {
        if let Ok(sampler) = &self.sampler {
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
        }
    }

    /// Kernel time by function since the beginning, or since [`forget`](Self::forget), in nanoseconds; nothing where nothing
    /// is sampled. The first time it takes as long as reading the names of all functions.
    pub(crate) fn functions(&self) -> BTreeMap<String, u64> {
        self.sampler.as_ref().map_or_else(|_| BTreeMap::new(), |sampler| sampler.borrow_mut().read())
    }
}
