//! What this machine does while an application runs on it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use virtbench_record::Footprint;

use crate::{Counters, LeaveOut, thread_cpu_ns};

/// A machine that is looked at, from its beginning on.
#[derive(Debug)]
pub struct Look {
    begun: Instant,
    own: bool,
    counters: Result<Counters, String>,
}

impl Look {
    /// Begins to count if `count` is set. [`LeaveOut::ThisThread`] leaves out what the calling thread does, whose looks are
    /// then all to be taken from it.
    #[must_use]
    pub fn new(count: bool, leave_out: LeaveOut) -> Self {
        let counters = if count {
            Counters::start(leave_out).map_err(|error| error.to_string())
        } else {
            Err("it was not asked for".into())
        };
        Self { begun: Instant::now(), own: leave_out == LeaveOut::Nobody, counters }
    }

    /// Why nothing is counted, where that is so.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.counters.as_ref().err().map(String::as_str)
    }

    /// What the machine has done so far, to be held against an earlier look; nothing where it does not say. How many
    /// bytes system calls copied the caller knows.
    #[must_use]
    pub fn take(&self, copied_bytes: u64) -> Option<Footprint> {
        let counts = self.counters.as_ref().map_or_else(|_| Ok(BTreeMap::new()), Counters::read).ok()?;
        let own = if self.own { [0, 0] } else { thread_cpu_ns() };
        let cpu = machine_cpu_ns()?;
        Some(Footprint {
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).ok()?,
            cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(own[mode])),
            copied_bytes,
            counts,
        })
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
