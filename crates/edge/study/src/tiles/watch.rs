//! The host, looked at second by second while tiles are measured.

use std::path::{Path, PathBuf};

use virtbench_engine::monotonic_ns;
use virtbench_lab::{CpuSample, available_memory_bytes, disk_busy_ms};
use virtbench_record::{HostUse, TileHostSecond};

const SECOND_NS: u64 = 1_000_000_000;

/// What the counters said at a moment.
struct Look {
    at_ns: u64,
    cpu: CpuSample,
    available_bytes: Option<u64>,
    disk_ms: Option<u64>,
}

/// Looks at the host from one moment to another, by the monotonic clock.
pub(super) struct Watch {
    from_ns: u64,
    to_ns: u64,
    folder: PathBuf,
    looks: Vec<Look>,
}

impl Watch {
    /// Nothing was seen yet. The disk is that of this folder.
    pub(super) fn new(from_ns: u64, to_ns: u64, folder: &Path) -> Self {
        Self { from_ns, to_ns, folder: folder.to_owned(), looks: Vec::new() }
    }

    /// Looks if the next second has come, or the end.
    pub(super) fn look(&mut self) {
        let now_ns = monotonic_ns();
        let due_ns = (self.from_ns + self.looks.len() as u64 * SECOND_NS).min(self.to_ns);
        let is_over = self.looks.last().is_some_and(|look| look.at_ns >= self.to_ns);
        if now_ns < due_ns || is_over {
            return;
        }
        let Ok(cpu) = CpuSample::take() else { return };
        let (available_bytes, disk_ms) = (available_memory_bytes(), disk_busy_ms(&self.folder));
        self.looks.push(Look { at_ns: now_ns, cpu, available_bytes, disk_ms });
    }

    /// The host over all of the time; nothing of fewer than two looks.
    pub(super) fn host(&self) -> Option<HostUse> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        (self.looks.len() > 1).then(|| first.cpu.until(&last.cpu))
    }

    /// Second by second.
    pub(super) fn seconds(&self) -> Vec<TileHostSecond> {
        let second = |pair: &[Look]| {
            let (before, after) = (&pair[0], &pair[1]);
            let used = before.cpu.until(&after.cpu);
            let length_ms = after.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e6;
            let disk = |before: Option<u64>, after: Option<u64>| {
                Some((100.0 * after?.checked_sub(before?)? as f64 / length_ms).min(100.0))
            };
            TileHostSecond {
                start_ns: before.at_ns.saturating_sub(self.from_ns),
                cpu_percent: used.cpu_percent,
                steal_percent: used.steal_percent,
                available_bytes: after.available_bytes,
                disk_percent: disk(before.disk_ms, after.disk_ms),
            }
        };
        self.looks.windows(2).map(second).collect()
    }
}
