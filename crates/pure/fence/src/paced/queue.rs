//! What waits for a device, by the time it is due and by place.

use std::collections::BTreeMap;

use crate::scheduler::QueuedIo;
use crate::types::Time;

/// The most I/Os that are looked at for one that is due soon enough: bounds the work of one event.
const MOST_CANDIDATES: usize = 64;
/// The most bytes that follow on one another before due times are looked at again.
const MOST_RUN_BYTES: u64 = 1 << 20;

/// I/Os by due time, equal ones by arrival.
#[derive(Debug)]
pub(super) struct DueQueue {
    by_due: BTreeMap<(Time, u64), QueuedIo>,
    /// Place and arrival to due time.
    by_place: BTreeMap<(u64, u64), Time>,
    arrived: u64,
    window_ns: u64,
    run_bytes: u64,
}

impl DueQueue {
    /// What is due up to `window_ns` after the first is served upwards by place from the head, then again from the
    /// lowest.
    pub(super) const fn new(window_ns: u64) -> Self {
        Self { by_due: BTreeMap::new(), by_place: BTreeMap::new(), arrived: 0, window_ns, run_bytes: 0 }
    }

    pub(super) fn push(&mut self, due: Time, io: QueuedIo) {
        self.arrived += 1;
        self.by_due.insert((due, self.arrived), io);
        self.by_place.insert((io.offset_bytes, self.arrived), due);
    }

    /// The next one, the head being at `head`, with when it is due. What follows on the last access goes on with it: a file of many blocks is
    /// one movement of the head.
    pub(super) fn take(&mut self, head: u64) -> Option<(Time, QueuedIo)> {
        let (&(first, number), _) = self.by_due.first_key_value()?;
        let latest = first.after(self.window_ns);
        let run = self.run_bytes < MOST_RUN_BYTES;
        let follows = self.by_place.range((head, 0)..=(head, u64::MAX)).next().filter(|_| run);
        let soon = |(_, due): &(&(u64, u64), &Time)| **due <= latest;
        let above = || self.by_place.range((head, 0)..).take(MOST_CANDIDATES).find(soon);
        let below = || self.by_place.range(..(head, 0)).take(MOST_CANDIDATES).find(soon);
        let scanned = || if self.window_ns > 0 { above().or_else(below) } else { None };
        let key = match follows.or_else(scanned) {
            Some((&(_, number), &due)) => (due, number),
            None => (first, number),
        };
        let io = self.by_due.remove(&key)?;
        self.by_place.remove(&(io.offset_bytes, key.1));
        let len = u64::from(io.len_bytes);
        self.run_bytes = if io.offset_bytes == head { self.run_bytes + len } else { 0 };
        Some((key.0, io))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_due.len()
    }
}
