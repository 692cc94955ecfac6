//! Operations on blocks, and writes. An operation that changes what a key means holds the lock of the key's block.

use super::block_op::{BlockOp, Phase, Run, WHOLE};
use super::metadata::{ENTRY_BYTES, Entry, Kind};
use super::table::{self, LOCKED, NONE, PENDING, State, WAITED};
use super::{BLOCK_BYTES, Part, Partition};
use crate::ports::{Owner, Ports};
use crate::types::{Data, DeviceOp, Effect, IoError, Op, Request, Time};

impl Partition {
    pub(super) fn owner(&self, op: u32) -> Owner {
        Owner::Block { partition: self.id, op }
    }

    /// Starts every block of a request that has been let in.
    #[allow(clippy::cast_possible_truncation)] // offsets within a block and a request
    pub(super) fn admit(&mut self, now: Time, index: u32, request: Request, ports: &mut Ports) {
        let end = request.offset_bytes + u64::from(request.len_bytes);
        let mut at = request.offset_bytes;
        let mut run: Option<Run> = None;
        let refused = self.refusal(self.admits(&request));
        let is_long = request.op == Op::Write && refused.is_none() && self.is_of_long_stream(&request);
        while at < end {
            let block = at / BLOCK_BYTES;
            let until = end.min((block + 1) * BLOCK_BYTES);
            let op = BlockOp {
                step: Phase::Miss,
                request: index,
                write: request.op == Op::Write,
                key: table::key(request.disk.0, block),
                buffer: request.buffer,
                at_bytes: (at - request.offset_bytes) as u32,
                within: (at % BLOCK_BYTES) as u32,
                len_bytes: (until - at) as u32,
                block: NONE,
                old: NONE,
                scratch: NONE,
                next: NONE,
                run: 1,
            };
            at = until;
            if op.write {
                if let Some(error) = refused {
                    ports.part_done(index, Err(error));
                    continue;
                }
                if is_long && self.may_pass(&op) {
                    let run = run.get_or_insert(Run::new(op));
                    self.extend_past(run, &op);
                    continue;
                }
                self.start_run(now, run.take(), ports);
                self.reserved += 1;
                self.start_write(now, op, ports);
            } else if self.table.find(op.key).is_some() {
                self.start_run(now, run.take(), ports);
                self.start_read(now, op, ports);
            } else {
                let run = run.get_or_insert(Run::new(op));
                self.extend_run(run, &op);
            }
        }
        self.start_run(now, run, ports);
    }

    /// The slow device gets a run of blocks that the cache does not have.
    pub(super) fn start_run(&mut self, now: Time, run: Option<Run>, ports: &mut Ports) {
        match run {
            Some(Run { op, .. }) if op.write => self.write_past(now, op, ports),
            Some(Run { op, .. }) => self.read_slow(now, op, ports),
            None => {}
        }
    }

    fn start(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        if op.write { self.start_write(now, op, ports) } else { self.start_read(now, op, ports) }
    }

    fn start_write(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        let found = self.table.find(op.key);
        if let Some(block) = found
            && self.table.has(block, LOCKED)
        {
            return self.wait_for(block, op);
        }
        self.reserved -= 1;
        let Some(block) = self.table.take_free() else {
            debug_assert!(false, "a write was let in without a block to go to");
            return ports.part_done(op.request, Err(IoError::TooLong));
        };
        match found {
            Some(old) => self.table.set(old, LOCKED),
            None => {
                self.table.insert(op.key, block);
                self.table.set(block, LOCKED);
            }
        }
        let step = if op.is_whole() { Phase::Store } else { Phase::Load };
        let id = self.ops.insert(BlockOp { step, block, old: found.unwrap_or(NONE), ..op });
        if op.is_whole() {
            let disk = table::disk_of(op.key);
            let io = self.fast_io(self.owner(id), disk, DeviceOp::Write, block, op.guest());
            ports.enqueue(now, io);
        } else if self.scratch_free.is_empty() {
            self.scratch_waiters.push_back(id);
        } else {
            self.load(now, id, ports);
        }
    }

    /// Reads the whole block of which a part is written into scratch, which there is.
    fn load(&mut self, now: Time, id: u32, ports: &mut Ports) {
        let (Some(scratch), Some(op)) = (self.scratch_free.pop(), self.ops.get_mut(id)) else { return };
        op.scratch = scratch;
        let op = *op;
        if op.old == NONE {
            self.ops.remove(id);
            return self.load_slow(now, op, ports);
        }
        self.table.pin(op.old);
        let disk = table::disk_of(op.key);
        let io = self.fast_io(self.owner(id), disk, DeviceOp::Read, op.old, op.scratch());
        ports.enqueue(now, io);
    }

    fn load_slow(&mut self, now: Time, op: BlockOp, ports: &mut Ports) {
        let id = self.ops.insert(BlockOp { step: Phase::LoadSlow, ..op });
        let io = self.slow_io(self.owner(id), op.key, DeviceOp::Read, Part::WHOLE, op.scratch());
        ports.enqueue(now, io);
    }

    pub(super) fn wait_for(&mut self, block: u32, op: BlockOp) {
        self.table.set(block, WAITED);
        let id = self.ops.insert(op);
        self.key_waiters.push_back((block, id));
    }

    /// Lets those go on that waited for `block`.
    pub(super) fn unlock(&mut self, now: Time, block: u32, ports: &mut Ports) {
        self.table.clear(block, LOCKED);
        if !self.table.has(block, WAITED) {
            return;
        }
        self.table.clear(block, WAITED);
        let mut restart = std::mem::take(&mut self.restart);
        ports.steps += self.key_waiters.len() as u64;
        self.key_waiters.retain(|&(waited, id)| {
            if waited == block {
                restart.push(id);
            }
            waited != block
        });
        for id in restart.drain(..) {
            if let Some(op) = self.ops.remove(id) {
                self.start(now, op, ports);
            }
        }
        self.restart = restart;
    }

    pub(super) fn give_scratch(&mut self, now: Time, scratch: u32, ports: &mut Ports) {
        self.scratch_free.push(scratch);
        if let Some(id) = self.scratch_waiters.pop_front() {
            self.load(now, id, ports);
        }
    }

    /// Begins to write a dirty block back; it is locked and on the write list.
    pub(super) fn start_write_back(&mut self, now: Time, block: u32, ports: &mut Ports) {
        let Some(scratch) = self.scratch_free.pop() else { return };
        let key = self.table.key(block);
        self.table.pin(block);
        let run = self.write_back.epoch;
        let op = BlockOp { len_bytes: WHOLE, block, scratch, run, ..BlockOp::own(Phase::BackRead, key) };
        let id = self.ops.insert(op);
        let io = self.fast_io(self.owner(id), table::disk_of(key), DeviceOp::Read, block, op.scratch());
        ports.enqueue(now, io);
    }

    /// The I/O of an operation has completed.
    pub(super) fn on_block(
        &mut self,
        now: Time,
        id: u32,
        result: Result<(), IoError>,
        crc: u32,
        ports: &mut Ports,
    ) {
        let Some(op) = self.ops.remove(id) else { return debug_assert!(false, "no such operation") };
        match op.step {
            Phase::Hit => self.on_hit(now, op, result, crc, ports),
            Phase::Miss => self.on_miss(now, op, result, ports),
            Phase::Fill => self.on_fill(now, op, result, crc, ports),
            Phase::Load => self.on_load(now, op, result, crc, ports),
            Phase::LoadSlow => self.on_loaded(now, op, result, ports),
            Phase::Store => self.on_store(now, op, result, crc, ports),
            Phase::Trim | Phase::TrimSync => self.on_trim(now, op, result, ports),
            Phase::Past => self.on_past(now, op, result, ports),
            Phase::PastSync => self.on_past_sync(now, op, result, ports),
            Phase::BackRead => {
                self.unpin(op.block);
                let result = result.and(self.check(op.block, crc));
                if result.is_err() {
                    self.on_written_back(now, (op.block, op.run), result, ports);
                    return self.give_scratch(now, op.scratch, ports);
                }
                let id = self.ops.insert(BlockOp { step: Phase::BackWrite, ..op });
                let io = self.slow_io(self.owner(id), op.key, DeviceOp::Write, Part::WHOLE, op.scratch());
                ports.enqueue(now, io);
            }
            Phase::BackWrite => {
                self.on_written_back(now, (op.block, op.run), result, ports);
                self.give_scratch(now, op.scratch, ports);
            }
        }
    }

    pub(super) fn check(&self, block: u32, crc: u32) -> Result<(), IoError> {
        if self.table.crc(block) == crc { Ok(()) } else { Err(IoError::Corrupt) }
    }

    fn on_load(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, crc: u32, ports: &mut Ports) {
        self.unpin(op.old);
        let result = result.and(self.check(op.old, crc));
        if result.is_err() && self.table.state(op.old) == State::Clean {
            return self.load_slow(now, op, ports);
        }
        self.on_loaded(now, op, result, ports);
    }

    /// The rest of the block is in scratch: lays the guest's part over it and stores it.
    fn on_loaded(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, ports: &mut Ports) {
        if result.is_err() {
            return self.fail_write(now, op, result, ports);
        }
        let to = Data::Scratch { block: op.scratch, at_bytes: op.within };
        ports.effects.push_back(Effect::Copy { from: op.guest(), to, len_bytes: op.len_bytes });
        let id = self.ops.insert(BlockOp { step: Phase::Store, ..op });
        let disk = table::disk_of(op.key);
        let io = self.fast_io(self.owner(id), disk, DeviceOp::Write, op.block, op.scratch());
        ports.enqueue(now, io);
    }

    fn on_store(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, crc: u32, ports: &mut Ports) {
        if result.is_err() {
            return self.fail_write(now, op, result, ports);
        }
        self.settle(op.key, op.block, State::Dirty, crc);
        if op.old == NONE {
            self.table.insert_used(op.block);
            self.unlock(now, op.block, ports);
        } else {
            self.table.unindex(op.old);
            self.table.remove_used(op.old);
            self.table.insert(op.key, op.block);
            self.table.insert_used(op.block);
            let waited = self.table.has(op.old, WAITED);
            self.table.clear(op.old, LOCKED | WAITED);
            self.supersede(op.old);
            if waited {
                self.table.set(op.old, WAITED);
                self.unlock(now, op.old, ports);
            }
        }
        if op.scratch != NONE {
            self.give_scratch(now, op.scratch, ports);
        }
        ports.part_done(op.request, Ok(()));
    }

    fn fail_write(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, ports: &mut Ports) {
        if op.old == NONE {
            self.cancel_fill(now, op.block, ports);
        } else {
            self.free(op.block);
            self.unlock(now, op.old, ports);
        }
        if op.scratch != NONE {
            self.give_scratch(now, op.scratch, ports);
        }
        ports.part_done(op.request, result);
    }

    /// The block's data has arrived: it has a version, and its entry goes with the next commit.
    pub(super) fn settle(&mut self, key: u64, block: u32, state: State, crc: u32) {
        self.table.set_crc(block, self.next_generation, crc);
        self.next_generation += 1;
        self.table.set_state(block, state);
        self.table.set(block, PENDING);
        self.commit.pending.push_back(block);
        if let (State::Dirty, Some(memory)) = (state, &mut self.memory) {
            let generation = self.table.generation(block);
            let mut bytes = [0; ENTRY_BYTES];
            Entry { generation, key, block, data_crc: crc, kind: Kind::Dirty }
                .encode(self.identity, &mut bytes);
            memory.store(self.commit.next(), &bytes);
        }
    }
}
