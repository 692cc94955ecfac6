//! The host, looked at second by second while tiles are measured.

use std::path::{Path, PathBuf};

use virtbench_engine::monotonic_ns;
use virtbench_lab::{CpuSample, NetworkSample, available_memory_bytes, disk_busy_ms};
use virtbench_record::{HostUse, TileHostSecond};

use super::member_machine::StandingMember;

const SECOND_NS: u64 = 1_000_000_000;

/// What the counters said at a moment.
struct Look {
    at_ns: u64,
    cpu: CpuSample,
    available_bytes: Option<u64>,
    disk_ms: Option<u64>,
    network: NetworkSample,
}

/// Looks at the host from one moment to another, by the monotonic clock.
pub(super) struct HostWatch {
    from_ns: u64,
    to_ns: u64,
    folder: PathBuf,
    looks: Vec<Look>,
    /// Of each member, processor time of the thread that carries its network at the first look and at the last one.
    threads: Vec<[Option<u64>; 2]>,
}

impl HostWatch {
    /// Nothing was seen yet. The disk is that of this folder.
    pub(super) fn new(from_ns: u64, to_ns: u64, folder: &Path) -> Self {
        Self { from_ns, to_ns, folder: folder.to_owned(), looks: Vec::new(), threads: Vec::new() }
    }

    /// Looks if the next second has come, or the end.
    pub(super) fn look(&mut self, members: &[StandingMember]) {
        let now_ns = monotonic_ns();
        let due_ns = (self.from_ns + self.looks.len() as u64 * SECOND_NS).min(self.to_ns);
        let is_over = self.looks.last().is_some_and(|look| look.at_ns >= self.to_ns);
        if now_ns < due_ns || is_over {
            return;
        }
        let Ok(cpu) = CpuSample::take() else { return };
        let (available_bytes, disk_ms) = (available_memory_bytes(), disk_busy_ms(&self.folder));
        let network = NetworkSample::take();
        let threads = members.iter().map(|member| member.machine.network_thread_ns());
        if self.looks.is_empty() {
            self.threads = threads.map(|first| [first, None]).collect();
        } else {
            self.threads.iter_mut().zip(threads).for_each(|(thread, last)| thread[1] = last);
        }
        self.looks.push(Look { at_ns: now_ns, cpu, available_bytes, disk_ms, network });
    }

    /// How busy the thread was that carries the network of this member, in percent.
    pub(super) fn network_thread_percent(&self, member: usize) -> Option<f64> {
        let [before, after] = *self.threads.get(member)?;
        let length_ns = self.looks.last()?.at_ns.checked_sub(self.looks.first()?.at_ns)?.max(1);
        Some(100.0 * after?.checked_sub(before?)? as f64 / length_ns as f64)
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
            let length_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
            let length_ms = length_ns as f64 / 1e6;
            let disk = |before: Option<u64>, after: Option<u64>| {
                Some((100.0 * after?.checked_sub(before?)? as f64 / length_ms).min(100.0))
            };
            TileHostSecond {
                start_ns: before.at_ns.saturating_sub(self.from_ns),
                cpu_percent: used.cpu_percent,
                steal_percent: used.steal_percent,
                available_bytes: after.available_bytes,
                disk_percent: disk(before.disk_ms, after.disk_ms),
                network_percent: before.network.busiest_percent(&after.network, length_ns),
            }
        };
        self.looks.windows(2).map(second).collect()
    }
}
