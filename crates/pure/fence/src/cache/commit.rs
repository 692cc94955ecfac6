//! Commits: data stable, entries written, entries stable.

use super::commit_state::CommitStep;
use super::metadata::{ENTRY_BYTES, Entry, Kind, LogHeader, NEW_PER_LOG_BLOCK, chunks};
use super::table::{ON_LOG, PENDING, State};
use super::{BLOCK_BYTES, Partition, Write};
use crate::ports::{NewIo, Owner, Ports};
use crate::types::{Data, Device, DeviceOp, DiskId, IoError, Time};

/// Log blocks written by one I/O at most.
const LOG_BLOCKS_AN_IO: u32 = 64;

const LOG_BLOCK_BYTES: usize = 4096;

const ENTRIES_PER_SECTOR: usize = 512 / ENTRY_BYTES;

impl Partition {
    /// Whether a commit is stable.
    pub(super) const fn has_log(&self) -> bool {
        self.commit.stable > 0
    }

    /// Begins the log of a partition that has none with a commit of nothing, so that an empty log is always one that was
    /// emptied.
    pub(super) fn begin_log(&mut self) -> Option<Write> {
        if self.sealed || self.commit.number > 0 || self.table.free.len() < self.table.len() {
            return None;
        }
        let mut bytes = vec![0; LOG_BLOCK_BYTES];
        LogHeader { commit: 1, after: 0, index: 0, count: 1 }.seal(self.identity, &mut bytes);
        self.commit.resume(1, 1, 1);
        Some(Write { offset_bytes: self.layout.log_offset_bytes, bytes })
    }

    /// A guest's flush: answered when what was completed before it is stable.
    pub(super) fn flush(&mut self, request: u32, ports: &mut Ports) {
        match self.refusal(true) {
            Some(error) => ports.part_done(request, Err(error)),
            None => self.commit.waiters.push(request),
        }
    }

    /// `old` has been overwritten elsewhere.
    pub(super) fn supersede(&mut self, old: u32) {
        if self.table.has(old, ON_LOG) {
            self.table.set_state(old, State::Superseded);
            self.commit.superseded.push(old);
            self.retiring += 1;
            self.bypass.leaves(self.table.key(old));
        } else {
            self.free(old);
        }
    }

    pub(super) fn commit_if_due(&mut self, now: Time, ports: &mut Ports) {
        // A commit that has nothing to write is over at once, and may make way for one that has.
        for _ in 0..3 {
            self.start_commit(now, ports);
        }
    }

    fn start_commit(&mut self, now: Time, ports: &mut Ports) {
        if self.commit.step != CommitStep::Idle || self.broken.is_some() {
            return;
        }
        let short =
            self.table.free.len() < self.free_target / 2 + self.low_watermark || !self.halted.is_empty();
        let due = !self.commit.waiters.is_empty()
            || self.commit.wanted
            || self.trims_wait()
            || self.commit.pending.len() >= NEW_PER_LOG_BLOCK as usize
            || self.commit.retiring() >= NEW_PER_LOG_BLOCK as usize
            || short && self.commit.retiring() > 0
            || self.memory.as_ref().is_some_and(|memory| memory.presses(self.commit.next()));
        if !due {
            return;
        }
        self.commit.wanted = false;
        std::mem::swap(&mut self.commit.waiters, &mut self.commit.waiters_now);
        if self.build(ports) {
            self.commit.step = CommitStep::DataSync;
            self.sync(now, ports);
        } else {
            self.committed(now, ports);
        }
    }

    /// Writes down what has changed; false if nothing has.
    fn build(&mut self, ports: &mut Ports) -> bool {
        std::mem::swap(&mut self.commit.superseded, &mut self.commit.superseded_now);
        std::mem::swap(&mut self.commit.tombstones, &mut self.commit.tombstones_now);
        std::mem::swap(&mut self.commit.tombstones, &mut self.commit.evicted);
        self.commit.bytes.clear();
        self.commit.built_generation = self.next_generation;
        self.commit.first = self.commit.head;
        self.commit.new = NEW_PER_LOG_BLOCK;
        while let Some(block) = self.commit.pending.pop_front() {
            ports.steps += 1;
            if self.table.has(block, PENDING) {
                self.table.clear(block, PENDING);
                self.table.set(block, ON_LOG);
                self.append(block, self.live_kind(block));
            }
        }
        let tombstones = std::mem::take(&mut self.commit.tombstones_now);
        for &block in &tombstones {
            self.table.set_crc(block, self.next_generation, 0);
            self.next_generation += 1;
            self.table.clear(block, ON_LOG);
            self.append(block, Kind::Tombstone);
        }
        self.commit.tombstones_now = tombstones;
        if self.commit.bytes.is_empty() {
            return false;
        }
        self.repeat_chunk();
        ports.steps += (self.commit.bytes.len() / ENTRY_BYTES) as u64;
        self.seal();
        true
    }

    /// What the entry of a block says that is not being retired by this commit. An old version counts as dirty as long
    /// as it may be the only stable one; one evicted but not yet retired is on the slow device.
    fn live_kind(&self, block: u32) -> Kind {
        match self.table.state(block) {
            State::Clean | State::Retired => Kind::Clean,
            _ => Kind::Dirty,
        }
    }

    /// Adds a new entry, in a new log block if the last has its share.
    fn append(&mut self, block: u32, kind: Kind) {
        if self.commit.new == NEW_PER_LOG_BLOCK {
            if !self.commit.bytes.is_empty() {
                self.repeat_chunk();
            }
            self.commit.new = 0;
            self.commit.bytes.extend_from_slice(&[0; ENTRY_BYTES]);
        }
        self.commit.new += 1;
        self.write_entry(block, kind);
    }

    fn write_entry(&mut self, block: u32, kind: Kind) {
        let (generation, key, data_crc) =
            (self.table.generation(block), self.table.key(block), self.table.crc(block));
        let mut bytes = [0; ENTRY_BYTES];
        Entry { generation, key, block, data_crc, kind }.encode(self.identity, &mut bytes);
        self.commit.bytes.extend_from_slice(&bytes);
    }

    /// Completes the last log block with the live entries of the chunk that its place in the ring stands for.
    fn repeat_chunk(&mut self) {
        let before = u32::try_from(self.commit.bytes.len() / LOG_BLOCK_BYTES).unwrap_or(0);
        let place = (self.commit.first + before) % self.layout.log_blocks;
        let chunk = place % chunks(self.layout.blocks);
        let from = chunk * NEW_PER_LOG_BLOCK;
        for block in from..self.layout.blocks.min(from + NEW_PER_LOG_BLOCK) {
            if self.table.has(block, ON_LOG) {
                self.write_entry(block, self.live_kind(block));
            }
        }
        self.keep_company();
        let whole = self.commit.bytes.len().next_multiple_of(LOG_BLOCK_BYTES);
        self.commit.bytes.resize(whole, 0);
    }

    /// An entry alone in its sector is there twice: a start knows one that was damaged by what else the sector has.
    fn keep_company(&mut self) {
        let entries = self.commit.bytes.len() / ENTRY_BYTES;
        if entries % ENTRIES_PER_SECTOR == 1 {
            self.commit.bytes.extend_from_within((entries - 1) * ENTRY_BYTES..);
        }
    }

    fn seal(&mut self) {
        self.commit.number += 1;
        let (commit, after) = (self.commit.number, self.commit.stable);
        let count = u32::try_from(self.commit.bytes.len() / LOG_BLOCK_BYTES).unwrap_or(0);
        for (index, block) in (0..count).zip(self.commit.bytes.chunks_exact_mut(LOG_BLOCK_BYTES)) {
            LogHeader { commit, after, index, count }.seal(self.identity, block);
        }
    }

    fn sync(&mut self, now: Time, ports: &mut Ports) {
        ports.enqueue(now, self.commit_io(DeviceOp::Flush, 0, 0, Data::None));
        self.commit.ios = 1;
    }

    fn commit_io(&self, op: DeviceOp, offset_bytes: u64, len_bytes: u32, data: Data) -> NewIo {
        NewIo {
            owner: Owner::Commit { partition: self.id },
            disk: DiskId(self.commit.disk),
            device: Device::Fast,
            op,
            offset_bytes,
            len_bytes,
            data,
            wants_crc: false,
        }
    }

    fn write_log(&mut self, now: Time, ports: &mut Ports) {
        self.commit.ios = 0;
        let ring = self.layout.log_blocks;
        let mut left = u32::try_from(self.commit.bytes.len() / LOG_BLOCK_BYTES).unwrap_or(ring);
        while left > 0 {
            let count = left.min(ring - self.commit.head).min(LOG_BLOCKS_AN_IO);
            let offset_bytes = self.layout.log_offset_bytes + u64::from(self.commit.head) * BLOCK_BYTES;
            ports.enqueue(now, self.commit_io(DeviceOp::Write, offset_bytes, count * 4096, Data::Core));
            self.commit.head = (self.commit.head + count) % ring;
            self.commit.ios += 1;
            left -= count;
        }
    }

    /// The bytes of a log write in flight.
    pub(crate) fn log_bytes(&self, offset_bytes: u64, len_bytes: u32) -> Option<&[u8]> {
        let ring = self.layout.log_blocks;
        let at = u32::try_from((offset_bytes - self.layout.log_offset_bytes) / BLOCK_BYTES).ok()?;
        let from = ((at + ring - self.commit.first) % ring) as usize * LOG_BLOCK_BYTES;
        self.commit.bytes.get(from..from + len_bytes as usize)
    }

    pub(super) fn on_commit(&mut self, now: Time, result: Result<(), IoError>, ports: &mut Ports) {
        if let Err(error) = result {
            self.commit.failed.get_or_insert(error);
        }
        self.commit.ios -= 1;
        if self.commit.ios > 0 {
            return;
        }
        if let Some(error) = self.commit.failed.take() {
            if self.commit.step == CommitStep::Entries {
                return self.log_failed(now, error, ports);
            }
            self.errors += 1;
            self.broken.get_or_insert(error);
            self.commit.step = CommitStep::Idle;
            return self.fail_waiters(error, ports);
        }
        match self.commit.step {
            CommitStep::DataSync => {
                self.commit.step = CommitStep::Entries;
                self.write_log(now, ports);
            }
            CommitStep::Entries => {
                self.commit.trouble = None;
                self.commit.step = CommitStep::EntrySync;
                self.sync(now, ports);
            }
            CommitStep::EntrySync | CommitStep::Idle => self.committed(now, ports),
        }
    }

    /// The entries of the running commit once more, to the places where they could not be written. They say the same.
    pub(super) fn write_log_again(&mut self, now: Time, ports: &mut Ports) {
        if self.commit.step == CommitStep::Entries && self.commit.ios == 0 {
            self.commit.head = self.commit.first;
            self.write_log(now, ports);
        }
    }

    /// Flushes that nobody can say when to answer.
    pub(super) fn fail_waiters(&mut self, error: IoError, ports: &mut Ports) {
        let waiters = std::mem::take(&mut self.commit.waiters_now);
        for request in waiters.into_iter().chain(std::mem::take(&mut self.commit.waiters)) {
            ports.part_done(request, Err(error));
        }
        self.abandon_trims(ports);
    }

    /// All that was built is stable.
    fn committed(&mut self, now: Time, ports: &mut Ports) {
        // A commit of nothing has no number: the last one may be that of a commit which a crash cut off.
        if self.commit.step == CommitStep::EntrySync {
            self.commit.stable = self.commit.number;
        }
        self.commit.step = CommitStep::Idle;
        self.commit.stable_generation = self.commit.built_generation;
        self.commit.rounds += 1;
        self.settling = false;
        if let Some(memory) = &self.memory {
            memory.forget(self.commit.stable);
        }
        for request in self.commit.waiters_now.drain(..) {
            ports.part_done(request, Ok(()));
        }
        let mut retired = std::mem::take(&mut self.commit.tombstones_now);
        for block in retired.drain(..) {
            ports.steps += 1;
            self.retiring -= 1;
            self.bypass.has_left(self.table.key(block));
            self.free(block);
        }
        self.commit.tombstones_now = retired;
        let mut superseded = std::mem::take(&mut self.commit.superseded_now);
        for &block in &superseded {
            ports.steps += 1;
            self.table.set_state(block, State::Retired);
        }
        self.commit.tombstones.append(&mut superseded);
        self.commit.superseded_now = superseded;
        self.discard(now, ports);
        self.evict(now, ports);
    }
}
