//! Reads: what is cached is checked whole, what is not is filled on its way to the guest.
//!
//! A guest may change its memory at any time, so nothing that was in it may become what the cache takes for the disk. A
//! block to be filled is read into scratch, and goes from there to the guest and to the fast device alike: one copy, as
//! many as from the guest's memory. Without scratch it goes straight to the guest and is not filled, so that no request waits.

use super::Partition;
use super::block_op::{BlockOp, Phase, Run, WHOLE};
use super::table::{self, LOCKED, NONE, State, WAITED};
use crate::ports::Ports;
use crate::types::{Data, DeviceOp, Effect, IoError, Time};

impl Partition {
    pub(super) fn start_read(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        let Some(block) = self.table.find(op.key) else {
            let mut run = Run::new(op);
            self.extend_run(&mut run, &op);
            return self.start_run(now, Some(run), ports);
        };
        if self.table.state(block) == State::Loading {
            return self.wait_for(block, op);
        }
        self.commit.hits += 1;
        if !self.table.has(block, table::WRITING) {
            self.table.touch(block);
        }
        self.table.pin(block);
        let id = self.ops.insert(BlockOp { step: Phase::Hit, block, ..op });
        // The checksum is the whole block's, so that a part is read whole.
        let data = if op.is_whole() { op.guest() } else { Data::Pieces };
        let io = self.fast_io(self.owner(id), table::disk_of(op.key), DeviceOp::Read, block, data);
        ports.enqueue(now, io);
    }

    /// Adds a missed block to a run, and a fill of it if there is room.
    pub(super) fn extend_run(&mut self, run: &mut Run, op: &BlockOp) {
        self.commit.misses += 1;
        run.op.run += 1;
        run.op.len_bytes += op.len_bytes;
        let room = self.table.free.len() > self.reserved + self.low_watermark;
        let stays_out = self.is_trimmed(op.key) || self.bypass.is_unsynced(op.key);
        if !op.is_whole() || !room || self.broken.is_some() || stays_out {
            return;
        }
        if let Some(block) = self.table.take_free() {
            self.table.insert(op.key, block);
            self.table.set(block, LOCKED);
            let fill = self.ops.insert(BlockOp { step: Phase::Fill, request: NONE, block, ..*op });
            match self.ops.get_mut(run.last) {
                Some(last) => last.next = fill,
                None => run.op.next = fill,
            }
            run.last = fill;
        }
    }

    pub(super) fn read_slow(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        let id = self.ops.insert(op);
        let data = if op.next == NONE { op.guest() } else { Data::Pieces };
        let io = self.slow_io(self.owner(id), op.key, DeviceOp::Read, op.part(), data);
        ports.enqueue(now, io);
    }

    /// The read of a run is dispatched: its fills get scratch, as long as there is some for fills. They have it no longer
    /// than devices take, so that no request that waits for a turn keeps it from others. Returns the steps taken.
    pub(crate) fn prepare(&mut self, run: u32) -> u64 {
        let Some(Phase::Miss) = self.ops.get(run).map(|op| op.step) else { return 0 };
        let (mut next, mut steps) = (self.ops.get(run).map_or(NONE, |op| op.next), 0);
        while self.filling < self.scratch_blocks.div_ceil(2)
            && let Some(fill) = self.ops.get_mut(next)
            && let Some(scratch) = self.scratch_free.pop()
        {
            fill.scratch = scratch;
            next = fill.next;
            self.filling += 1;
            steps += 1;
        }
        steps
    }

    /// Where the data of a read belongs: of a hit a part, of a run scratch for the blocks that are filled and the guest's
    /// memory for what is between them.
    pub(crate) fn pieces(&self, id: u32, mut each: impl FnMut(Data, u32)) {
        let Some(op) = self.ops.get(id) else { return };
        if op.step == Phase::Hit {
            each(Data::None, op.within);
            each(op.guest(), op.len_bytes);
            return each(Data::None, WHOLE - op.within - op.len_bytes);
        }
        let end = op.at_bytes + op.len_bytes;
        let (mut at_bytes, mut next) = (op.at_bytes, op.next);
        while at_bytes < end {
            let fill = self.ops.get(next).filter(|fill| fill.scratch != NONE);
            let until = fill.map_or(end, |fill| fill.at_bytes);
            if at_bytes < until {
                each(Data::Guest { buffer: op.buffer, at_bytes }, until - at_bytes);
            }
            at_bytes = until;
            if let Some(fill) = fill {
                each(fill.scratch(), WHOLE);
                (at_bytes, next) = (until + WHOLE, fill.next);
            }
        }
    }

    pub(super) fn on_hit(
        &mut self,
        now: Time,
        op: BlockOp,
        result: Result<(), IoError>,
        crc: u32,
        ports: &mut Ports,
    ) {
        let result = result.and(self.check(op.block, crc));
        let state = self.table.state(op.block);
        self.unpin(op.block);
        let miss = BlockOp { step: Phase::Miss, block: NONE, ..op };
        match (state, result) {
            // Nowhere else is the newest version of a dirty block.
            (State::Dirty, _) | (_, Ok(())) => ports.part_done(op.request, result),
            // The slow device has the same: it replaces what is damaged.
            (State::Clean, Err(IoError::Corrupt))
                if !self.table.has(op.block, LOCKED) && self.broken.is_none() =>
            {
                self.give_up(op.block);
                self.start_read(now, miss, ports);
            }
            (State::Clean, Err(_)) => self.read_slow(now, miss, ports),
            // It has been evicted or overwritten since.
            _ => self.start_read(now, miss, ports),
        }
    }

    pub(super) fn on_miss(
        &mut self,
        now: Time,
        run: BlockOp,
        result: Result<(), IoError>,
        ports: &mut Ports,
    ) {
        let mut next = run.next;
        while let Some(fill) = self.ops.get(next).copied() {
            if result.is_ok() && fill.scratch != NONE {
                self.fill(now, next, fill, ports);
            } else {
                self.ops.remove(next);
                self.cancel_fill(now, fill.block, ports);
                self.give_fill_scratch(now, fill.scratch, ports);
            }
            next = fill.next;
        }
        ports.parts_done(run.request, run.run, result);
    }

    /// From scratch to the guest, and into the cache.
    fn fill(&mut self, now: Time, id: u32, fill: BlockOp, ports: &mut Ports) {
        let (from, to) = (fill.scratch(), fill.guest());
        ports.effects.push_back(Effect::Copy { from, to, len_bytes: WHOLE });
        let disk = table::disk_of(fill.key);
        let io = self.fast_io(self.owner(id), disk, DeviceOp::Write, fill.block, from);
        ports.enqueue(now, io);
    }

    pub(super) fn on_fill(
        &mut self,
        now: Time,
        op: BlockOp,
        result: Result<(), IoError>,
        crc: u32,
        ports: &mut Ports,
    ) {
        if result.is_ok() {
            self.settle(op.key, op.block, State::Clean, crc);
            self.table.insert_used(op.block);
            self.unlock(now, op.block, ports);
        } else {
            self.cancel_fill(now, op.block, ports);
        }
        self.give_fill_scratch(now, op.scratch, ports);
    }

    /// Nothing has come into a block that was to be filled or stored: what waits for it goes on without.
    pub(super) fn cancel_fill(&mut self, now: Time, block: u32, ports: &mut Ports) {
        self.table.unindex(block);
        let waited = self.table.has(block, WAITED);
        self.free(block);
        if waited {
            self.table.set(block, WAITED);
            self.unlock(now, block, ports);
        }
    }

    /// A fill needs its scratch no more, if it had any.
    fn give_fill_scratch(&mut self, now: Time, scratch: u32, ports: &mut Ports) {
        if scratch != NONE {
            self.filling -= 1;
            self.give_scratch(now, scratch, ports);
        }
    }
}
