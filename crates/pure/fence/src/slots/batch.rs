//! The largest batch of slow accesses that is predicted to fit, grown one access at a time.

use std::collections::VecDeque;

use crate::predict::SlowPredictor;
use crate::scheduler::QueuedIo;
use crate::types::DeviceOp;

/// Accesses in ascending order of offset, as a scan serves them, and what they are predicted to take.
#[derive(Debug, Default)]
pub(super) struct SlowBatch {
    sorted: Vec<QueuedIo>,
    /// Flushes and discards; they move no head.
    unplaced: Vec<QueuedIo>,
    head: u64,
    predicted_ns: u64,
}

fn end(io: &QueuedIo) -> u64 {
    io.offset_bytes + u64::from(io.len_bytes)
}

impl SlowBatch {
    /// An empty batch, the head at byte `head`.
    pub(super) fn begin(&mut self, head: u64) {
        self.sorted.clear();
        self.unplaced.clear();
        self.head = head;
        self.predicted_ns = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len() + self.unplaced.len()
    }

    /// What it is predicted to take.
    pub(super) const fn predicted_ns(&self) -> u64 {
        self.predicted_ns
    }

    /// Takes `io` in if the batch is then still predicted to take at most `limit_ns`.
    pub(super) fn add(&mut self, predict: &SlowPredictor, io: QueuedIo, limit_ns: u64) -> bool {
        let (place, more, less) = match io.op {
            DeviceOp::Read | DeviceOp::Write => {
                let place = self.sorted.partition_point(|other| other.offset_bytes <= io.offset_bytes);
                let before = place.checked_sub(1).map_or(self.head, |before| end(&self.sorted[before]));
                let to = predict.access_ns(before, io.offset_bytes);
                match self.sorted.get(place) {
                    None => (Some(place), to, 0),
                    Some(next) => {
                        let on = predict.access_ns(end(&io), next.offset_bytes);
                        (Some(place), to + on, predict.access_ns(before, next.offset_bytes))
                    }
                }
            }
            DeviceOp::Flush => (None, predict.flush_ns(), 0),
            DeviceOp::Discard => (None, 0, 0),
        };
        let predicted_ns = (self.predicted_ns + more).saturating_sub(less);
        if predicted_ns > limit_ns {
            return false;
        }
        self.predicted_ns = predicted_ns;
        match place {
            Some(place) => self.sorted.insert(place, io),
            None => self.unplaced.push(io),
        }
        true
    }

    /// Hands the batch over in its order; returns where the head will be.
    pub(super) fn finish(&mut self, staged: &mut VecDeque<QueuedIo>) -> u64 {
        let head = self.sorted.last().map_or(self.head, end);
        staged.extend(self.sorted.drain(..));
        staged.extend(self.unplaced.drain(..));
        head
    }
}
