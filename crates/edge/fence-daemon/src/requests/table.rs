//! Requests of clients in flight: what of each has been handed to the fence, and what is still to come.

use virtbench_fence::{DiskId, IoError, Op, Time};

use crate::memory::{Buffer, Segment};
use crate::request::{Action, Done, Memory, Request};

/// Parts of one request that the fence has at once at most.
const MOST_PARTS: u32 = 4;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) front_end: usize,
    pub(super) request: Request,
    pub(super) memory: Memory,
    /// When it was handed in.
    pub(super) begun: Time,
    /// Bytes handed to the fence so far, and parts of them not yet answered.
    handed_bytes: u64,
    parts: u32,
    /// The flush at the end of a forced write has been handed over.
    flushing: bool,
    /// Its client is gone: nothing more of it is handed over.
    abandoned: bool,
    result: Result<(), IoError>,
}

/// The next thing to hand to the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) op: Op,
    /// From the beginning of the request.
    pub(super) at_bytes: u64,
    pub(super) len_bytes: u32,
}

impl Pending {
    pub(super) const fn new(front_end: usize, request: Request, memory: Memory, begun: Time) -> Self {
        Self {
            begun,
            front_end,
            request,
            memory,
            handed_bytes: 0,
            parts: 0,
            flushing: false,
            abandoned: false,
            result: Ok(()),
        }
    }

    /// Its client has left: it is done when the parts that were handed over are.
    pub(super) const fn abandon(&mut self) {
        self.abandoned = true;
    }

    pub(super) const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// The next part, if one may be handed over now. Nothing more is after an error, or once it is abandoned.
    pub(super) fn next_part(&mut self, max_bytes: u32) -> Option<Part> {
        if self.abandoned {
            return None;
        }
        let op = match self.request.action {
            Action::Flush if self.handed_bytes == 0 => {
                self.handed_bytes = 1;
                self.parts = 1;
                return Some(Part { op: Op::Flush, at_bytes: 0, len_bytes: 0 });
            }
            Action::Flush => return None,
            Action::Read => Op::Read,
            Action::Write { .. } | Action::WriteZeroes { .. } => Op::Write,
            Action::Discard => Op::Discard,
        };
        let left = self.request.len_bytes - self.handed_bytes.min(self.request.len_bytes);
        // A request of no length is handed over once, for the fence to refuse.
        let empty = self.request.len_bytes == 0 && self.parts == 0 && !self.flushing;
        if self.parts >= MOST_PARTS || self.result.is_err() || left == 0 && !empty {
            return None;
        }
        let at_bytes = self.handed_bytes;
        let len_bytes = u32::try_from(left).unwrap_or(u32::MAX).min(max_bytes);
        self.handed_bytes += u64::from(len_bytes);
        self.parts += 1;
        Some(Part { op, at_bytes, len_bytes })
    }

    /// A part has been answered. True if the request is done; otherwise [`next_part`](Self::next_part) may have more, or
    /// the closing flush is due ([`closing_flush`](Self::closing_flush)).
    pub(super) fn answered(&mut self, result: Result<(), IoError>) -> bool {
        self.parts -= 1;
        self.result = self.result.and(result);
        if self.parts > 0 {
            return false;
        }
        let forced =
            matches!(self.request.action, Action::Write { fua: true } | Action::WriteZeroes { fua: true });
        let all = self.handed_bytes >= self.request.len_bytes;
        self.abandoned || self.result.is_err() || all && (self.flushing || !forced)
    }

    /// The flush that makes a forced write stable, once all of it is written.
    pub(super) fn closing_flush(&mut self) -> Option<Part> {
        let all = self.handed_bytes >= self.request.len_bytes;
        if self.parts > 0 || self.flushing || !all || self.result.is_err() {
            return None;
        }
        self.flushing = true;
        self.parts = 1;
        Some(Part { op: Op::Flush, at_bytes: 0, len_bytes: 0 })
    }

    /// What the front end is told, and the list of pieces that is to be used again. Its memory is gone then.
    #[inline]
    pub(super) fn finish(&mut self) -> (Done, Option<Vec<Segment>>) {
        let (buffer, list): (Option<Buffer>, _) = match std::mem::replace(&mut self.memory, Memory::None) {
            Memory::None => (None, None),
            Memory::Owned(buffer) => (Some(buffer), None),
            Memory::Shared { segments, keep } => {
                drop(keep);
                (None, Some(segments))
            }
        };
        (Done { tag: self.request.tag, result: self.result, buffer }, list)
    }
}

/// Requests by a small number that is used again, bounded for each disk.
#[derive(Debug)]
pub(super) struct Table {
    places: Vec<Option<Pending>>,
    free: Vec<u32>,
    per_disk: Vec<usize>,
    most_per_disk: usize,
}

impl Table {
    pub(super) fn new(disks: usize, most_per_disk: usize) -> Self {
        Self { places: Vec::new(), free: Vec::new(), per_disk: vec![0; disks], most_per_disk }
    }

    pub(super) const fn most_per_disk(&self) -> usize {
        self.most_per_disk
    }

    pub(super) fn room(&self, disk: DiskId) -> usize {
        self.per_disk.get(disk.index()).map_or(0, |used| self.most_per_disk.saturating_sub(*used))
    }

    #[allow(clippy::cast_possible_truncation)] // bounded by disks and requests of each
    pub(super) fn insert(&mut self, pending: Pending) -> u32 {
        self.per_disk[pending.request.disk.index()] += 1;
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(pending);
            return index;
        }
        self.places.push(Some(pending));
        self.places.len() as u32 - 1
    }

    pub(super) fn get(&self, index: u32) -> Option<&Pending> {
        self.places.get(index as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Pending> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    /// All of a front end.
    pub(super) fn pending_of(&mut self, front_end: usize) -> impl Iterator<Item = &mut Pending> {
        self.places.iter_mut().flatten().filter(move |pending| pending.front_end == front_end)
    }

    /// Makes room: the request is done.
    #[inline]
    pub(super) fn remove(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        if let Some(pending) = place {
            self.per_disk[pending.request.disk.index()] -= 1;
            self.free.push(index);
            *place = None;
        }
    }

    /// Requests in flight of each disk.
    pub(super) fn per_disk(&self) -> impl Iterator<Item = usize> {
        self.per_disk.iter().copied()
    }

    /// Requests in flight.
    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
