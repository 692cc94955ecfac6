//! What a machine did while it was looked at: times, system calls, operations of its disks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that a machine did, by any program: on a quiet one the application and the kernel's own
/// threads for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Footprint {
    /// How long it was looked at, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time of its processors, in nanoseconds: user code, and kernel code with interrupts.
    pub cpu_ns: [u64; 2],
    /// Bytes that system calls copied for the application.
    pub copied_bytes: u64,
    /// Kernel time by function, in nanoseconds, as far as samples of it tell; empty where it was not sampled.
    #[serde(default)]
    pub functions: BTreeMap<String, u64>,
    /// What its disks did; nothing where the machine does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<DiskCounts>,
    /// How long programs stood still for its disks; nothing where the machine does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<IoStalls>,
    /// How often the kernel was entered; nothing where that was not counted, which makes each system call slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossings: Option<Crossings>,
    /// Time that its user code takes under QEMU's translator of instructions on the same machine, in nanoseconds; nothing where that was not
    /// tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated_ns: Option<u64>,
}

impl Footprint {
    /// How many times as long its user code takes under the translator; nothing where that was not tried, or there is too little to tell.
    #[must_use]
    pub fn translation(&self) -> Option<f64> {
        let [user_ns, _] = self.cpu_ns;
        let translated_ns = self.translated_ns.filter(|ns| *ns > 0 && user_ns >= TOLD_NS)?;
        Some(translated_ns as f64 / user_ns as f64)
    }
}

/// Less user code than this is within the grain of the kernel's accounts, in nanoseconds.
const TOLD_NS: u64 = 50_000_000;

/// Operations of all whole disks of a machine together (the kernel's iostats.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes of their caches.
    pub flushes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// How long all of them took together, in nanoseconds, whole milliseconds of each kind. Those that were under way at once count each.
    #[serde(default)]
    pub time_ns: u64,
}

impl DiskCounts {
    /// What came since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// Those of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: of(self.reads, other.reads),
            writes: of(self.writes, other.writes),
            flushes: of(self.flushes, other.flushes),
            read_bytes: of(self.read_bytes, other.read_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
            time_ns: of(self.time_ns, other.time_ns),
        }
    }

    /// Reads, writes and flushes.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }
}

/// Time that programs stood still for I/O (pressure stall information, the kernel's psi.rst), in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoStalls {
    /// At least one of them did.
    pub some_ns: u64,
    /// All that had anything to do did, so that nothing was computed meanwhile.
    pub full_ns: u64,
}

impl IoStalls {
    /// What came since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            some_ns: self.some_ns.saturating_sub(earlier.some_ns),
            full_ns: self.full_ns.saturating_sub(earlier.full_ns),
        }
    }
}

/// How often a machine's kernel was entered, by what for: all its programs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crossings {
    /// System calls.
    pub calls: u64,
    /// Those of them that name a file, which the kernel has to look for.
    pub names: u64,
    /// Those that make, rename or remove a name. An open that makes a file is one of [`names`](Self::names) too.
    pub changes: u64,
    /// Faults of pages.
    pub faults: u64,
    /// Processes and threads that were started.
    pub forks: u64,
}

impl Crossings {
    /// What came since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// Those of so many times the work.
    #[must_use]
    pub fn scaled(&self, times: f64) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as many as fit
        self.with(self, |count, _| (count as f64 * times).round() as u64)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            calls: of(self.calls, other.calls),
            names: of(self.names, other.names),
            changes: of(self.changes, other.changes),
            faults: of(self.faults, other.faults),
            forks: of(self.forks, other.forks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_since_is_the_difference_and_never_less_than_nothing() {
        let (then, now) = (
            Crossings { calls: 5, forks: 9, ..Crossings::default() },
            Crossings { calls: 8, ..Crossings::default() },
        );
        assert_eq!(now.since(&then), Crossings { calls: 3, ..Crossings::default() });
        assert_eq!(now.scaled(0.5).calls, 4);
        let (one, more) = (
            DiskCounts { reads: 1, written_bytes: 512, ..DiskCounts::default() },
            DiskCounts { reads: 3, flushes: 2, ..DiskCounts::default() },
        );
        assert_eq!((more.since(&one).reads, one.and(&more).operations()), (2, 6));
    }
}
