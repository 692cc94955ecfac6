//! What this machine does while an application runs on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use virtbench_record::Footprint;

use crate::sampler::Sampler;
use crate::thread_cpu_ns;

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
        let sampler = if sample {
            Sampler::start().map(RefCell::new).map_err(|error| {
                format!("the kernel refuses ({error}); root is needed, or kernel.perf_event_paranoid=-1")
            })
        } else {
            Err("it was not asked for".into())
        };
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

/// What all processors did since boot, in nanoseconds: user code, and system code with interrupts;
/// nothing where the kernel does not say.
#[must_use]
pub fn machine_cpu_ns() -> Option<[u64; 2]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let sum =
        |places: &[usize]| places.iter().map(|place| ticks.get(*place).copied().unwrap_or(0)).sum::<u64>();
    // SAFETY: sysconf reads a constant of the system and has no memory effects.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    let ns = 1_000_000_000 / per_second;
    Some([sum(&[0, 1]) * ns, sum(&[2, 5, 6]) * ns])
}
