//! Writes past the cache: of a long stream, straight to the slow device, where a disk asks for it.
//!
//! The invariant, for each block that is written so: **from the beginning of the write until it is stable on the slow device,
//! no entry on the fast device names the block, unless it is of a write to the cache that came later.** So whatever ends in
//! between, the slow device has what is read. It holds because
//!
//! 1. a write past the cache begins only for a whole block that the cache does not have, of which no entry awaits its
//!    tombstone, and that is in no trim which is not answered; every other block of the request goes through the cache;
//! 2. while it is in flight, a free block of the cache stands for it, locked: reads, writes and trims of it wait or pass, as
//!    they do for a write to the cache;
//! 3. until the slow device has been synced, no read puts the block into the cache: its entry would say that the slow device
//!    has the same, which a power failure could undo.
//!
//! A flush is answered after a commit and a sync of the slow device. What a sync that fails has lost is in no memory any
//! more: every flush that waited for it fails, and if one of the lost writes was answered after these had come, so does the
//! next. That outlives a kill, in the [`MemoryLog`](super::MemoryLog). Writes in flight at such a sync fail themselves.
//!
//! A flush ends streams: what is flushed every few blocks, such as the log of a database, stays in the cache.

use super::Partition;
use super::block_op::{BlockOp, Part, Phase, Run};
use super::bypass_state::{Sync, hull};
use super::memory_log::Writer;
use super::table::{self, LOCKED};
use crate::ports::Ports;
use crate::types::{Data, DeviceOp, DiskId, IoError, Request, RequestId, Time};

/// What an error was that an earlier process has not told: `EIO`.
const LOST: IoError = IoError::Device(5);

impl Partition {
    /// Whether a write is of a stream that is long enough by now.
    pub(super) fn is_of_long_stream(&mut self, request: &Request) -> bool {
        let Some(past) = self.bypass.disks.get_mut(request.disk.index()) else { return false };
        let Some(cutoff_bytes) = past.cutoff_bytes else { return false };
        let end = request.offset_bytes + u64::from(request.len_bytes);
        past.streams.write(request.offset_bytes, end) >= cutoff_bytes && self.write_back.trouble.is_none()
    }

    /// Whether the block of a write may go past the cache.
    pub(super) fn may_pass(&self, op: &BlockOp) -> bool {
        op.is_whole()
            && self.table.free.len() > self.reserved
            && self.table.find(op.key).is_none()
            && !self.bypass.leaving.contains_key(&op.key)
            && !self.is_trimmed(op.key)
    }

    /// Adds a block to a run that goes past the cache, and has a free block stand for it.
    pub(super) fn extend_past(&mut self, run: &mut Run, op: &BlockOp) {
        let Some(block) = self.table.take_free() else {
            return debug_assert!(false, "a write was let in without a block to stand for it");
        };
        self.table.insert(op.key, block);
        self.table.set(block, LOCKED);
        self.bypass.held += 1;
        run.op.run += 1;
        run.op.len_bytes += op.len_bytes;
    }

    pub(super) fn write_past(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        let op = BlockOp { step: Phase::Past, next: self.write_back.epoch, ..op };
        let id = self.ops.insert(op);
        let io = self.slow_io(self.owner(id), op.key, DeviceOp::Write, op.part(), op.guest());
        ports.enqueue(now, io);
    }

    /// A run is on the slow device, or could not be written there.
    pub(super) fn on_past(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, ports: &mut Ports) {
        // A sync has failed since: whether it was kept is unknown.
        let result = if op.next == self.write_back.epoch { result } else { result.and(Err(LOST)) };
        let keys = op.key..op.key + u64::from(op.run);
        if let Some(past) = self.bypass.disks.get_mut(usize::from(table::disk_of(op.key))) {
            // Of one that failed any part may be there.
            past.written += 1;
            past.since = hull(past.since.take(), Some(keys.clone()));
            past.bytes += if result.is_ok() { u64::from(op.len_bytes) } else { 0 };
        }
        self.note_loss();
        for key in keys {
            ports.steps += 1;
            let Some(block) = self.table.find(key) else {
                debug_assert!(false, "nothing stands for a block in flight");
                continue;
            };
            self.bypass.held -= 1;
            self.cancel_fill(now, block, ports);
        }
        ports.parts_done(op.request, op.run, result);
    }

    /// A guest's flush: what it says is stable when this has been done, and the commit.
    pub(super) fn submit_flush(&mut self, now: Time, id: RequestId, disk: DiskId, ports: &mut Ports) {
        let past = self.bypass.disks.get_mut(disk.index());
        let lost = past.and_then(|past| {
            past.streams.end();
            past.lost.take()
        });
        self.note_loss();
        if let Some(error) = lost {
            return ports.refuse(id, error);
        }
        let unsynced = self.bypass.disks.get_mut(disk.index()).filter(|past| past.written > past.stable);
        let index = ports.begin_request(id, 1 + u32::from(unsynced.is_some()));
        if let Some(past) = unsynced {
            past.waiters.push_back((index, past.written));
            self.sync_past(now, disk, ports);
        }
        self.flush(index, ports);
    }

    /// Syncs the slow device if flushes wait for it and none has begun.
    fn sync_past(&mut self, now: Time, disk: DiskId, ports: &mut Ports) {
        let epoch = self.write_back.epoch;
        let Some(past) = self.bypass.disks.get_mut(disk.index()) else { return };
        if past.sync.is_some() || past.waiters.is_empty() {
            return;
        }
        past.sync = Some(Sync { covers: past.written, keys: past.since.take(), epoch });
        let op = BlockOp::own(Phase::PastSync, table::key(disk.0, 0));
        let id = self.ops.insert(op);
        let nothing = Part { within: 0, len_bytes: 0 };
        let io = self.slow_io(self.owner(id), op.key, DeviceOp::Flush, nothing, Data::None);
        ports.enqueue(now, io);
    }

    /// A sync is over. Of one that failed [`past_sync_failed`](Self::past_sync_failed) has told.
    pub(super) fn on_past_sync(
        &mut self,
        now: Time,
        op: BlockOp,
        result: Result<(), IoError>,
        ports: &mut Ports,
    ) {
        let disk = DiskId(table::disk_of(op.key));
        let Some(past) = self.bypass.disks.get_mut(disk.index()) else { return };
        let Some(sync) = past.sync.take() else { return debug_assert!(false, "no sync is under way") };
        if result.is_ok() && sync.epoch == self.write_back.epoch {
            past.stable = sync.covers;
            while let Some(&(request, covers)) = past.waiters.front()
                && covers <= sync.covers
            {
                past.waiters.pop_front();
                ports.part_done(request, Ok(()));
            }
        } else {
            past.since = hull(past.since.take(), sync.keys);
        }
        self.note_loss();
        self.sync_past(now, disk, ports);
    }

    /// A sync of the slow device has failed, of this partition or another.
    pub(super) fn past_sync_failed(&mut self, error: IoError, ports: &mut Ports) {
        for past in &mut self.bypass.disks {
            for (request, _) in past.lose(error) {
                ports.part_done(request, Err(error));
            }
        }
        self.note_loss();
    }

    /// A flush that failed was of no guest: the next one tells.
    pub(crate) fn flush_untold(&mut self, disk: DiskId, error: IoError) {
        if let Some(past) = self.bypass.disks.get_mut(disk.index()).filter(|past| past.cutoff_bytes.is_some())
        {
            past.lost = Some(error);
        }
        self.note_loss();
    }

    /// Writes down what a process that comes after a kill has to know.
    fn note_loss(&self) {
        if let Some(memory) = &self.memory {
            let untold = self.bypass.bits(|past| past.lost.is_some());
            memory.note_loss(untold, self.bypass.bits(|past| past.written > past.stable));
        }
    }

    /// Just recovered: an earlier process may have left word of a loss.
    pub(super) fn remember_loss(&mut self) {
        let Some(untold) = self.memory.as_ref().map(Writer::untold) else { return };
        for (disk, past) in self.bypass.disks.iter_mut().enumerate() {
            past.lost = (untold >> disk & 1 == 1).then_some(LOST);
        }
    }

    /// Bytes of a disk written past the cache.
    pub(crate) fn bypassed_bytes(&self, disk: DiskId) -> u64 {
        self.bypass.bytes(disk)
    }

    /// Whether a disk has lost something that no flush has told.
    pub(crate) fn is_loss_untold(&self) -> bool {
        self.bypass.is_loss_untold()
    }
}
