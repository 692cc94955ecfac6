//! From the loop to the figures: ten times a second under load, and before the loop sleeps.

use std::sync::Arc;

use virtbench_fence::{DiskId, Fence, Time};

use super::Metrics;
use super::intervals::{Intervals, Seen};
use super::response_times::Parts;

/// What only the loop's thread has to know.
#[derive(Debug)]
pub(crate) struct Publisher {
    figures: Arc<Metrics>,
    intervals: Vec<(Intervals, Parts)>,
    /// Of each disk, what the fence has said last.
    bypassed_bytes: Vec<u64>,
}

impl Publisher {
    pub(crate) fn new(figures: Arc<Metrics>) -> Self {
        let of = |disk: &Arc<super::DiskMetrics>| (Intervals::new(disk.alone), Parts::default());
        let intervals = figures.disks.iter().map(of).collect();
        let bypassed_bytes = vec![0; figures.disks.len()];
        Self { figures, intervals, bypassed_bytes }
    }

    /// How everything stands; `under_way` are the requests of each disk.
    pub(crate) fn publish(&mut self, now: Time, under_way: impl Iterator<Item = usize>, fence: &Fence) {
        let disks = self.figures.disks.iter().zip(&mut self.intervals);
        for (id, ((disk, (intervals, parts)), under_way)) in (0..).zip(disks.zip(under_way)) {
            let under_way = under_way as u64;
            disk.under_way.set(under_way);
            if let Some(before) = self.bypassed_bytes.get_mut(usize::from(id)) {
                // The counts of a disk outlive the fence, which begins at 0.
                let bytes = fence.bypassed_bytes(DiskId(id));
                disk.bypassed_bytes.add(bytes - std::mem::replace(before, bytes));
            }
            let sum = |counts: &[super::Count]| counts.iter().map(super::Count::get).sum();
            let seen = Seen { requests: sum(&disk.requests), response_ns: sum(&disk.response_ns), under_way };
            parts.look(now, seen.requests, &disk.response_times);
            let so_far = intervals.look(now, seen).then(|| intervals.so_far());
            if let Ok(mut stand) = disk.stand.try_lock() {
                stand.account = fence.account(now, DiskId(id));
                stand.so_far = so_far.unwrap_or(stand.so_far);
            }
        }
        self.figures.caches_stand(fence.cache_counts());
    }
}
