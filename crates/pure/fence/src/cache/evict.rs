//! Background eviction: the least recently used leave so that enough blocks are free ([VirtualFence 2013], section 6.1).

use super::Partition;
use super::commit_state::WriteBack;
use super::table::{LOCKED, ON_LOG, State, WRITING};
use crate::ports::{NewIo, Owner, Ports};
use crate::types::{Data, Device, DeviceOp, DiskId, IoError, Time};

/// Blocks looked at from the end of the LRU list before giving up until the next event.
const LOOK_AT: usize = 16;

/// Written blocks after which the slow device is synced though more are in flight.
const SYNC_AFTER: usize = 16;

impl Partition {
    /// Starts to free blocks until enough are free or on their way. Bounded by the blocks that are missing.
    pub(super) fn evict(&mut self, now: Time, ports: &mut Ports) {
        if self.broken.is_some() || self.settling {
            return;
        }
        while self.table.free.len() + self.retiring + self.bypass.held < self.free_target {
            let Some(block) = self.victim(now, ports) else { return };
            if self.table.state(block) == State::Clean {
                self.give_up(block);
            } else if self.write_back.under_way <= self.scratch_blocks / 4 && !self.scratch_free.is_empty() {
                self.retiring += 1;
                self.write_back.under_way += 1;
                self.table.set(block, LOCKED | WRITING);
                self.table.start_writing(block);
                self.start_write_back(now, block, ports);
            } else {
                return;
            }
        }
    }

    /// The least recently used block that is not being changed. A dirty one whose entry is not stable must wait for a commit:
    /// the entry of what it replaced may say that the slow device has the same, which would no longer be so.
    fn victim(&mut self, now: Time, ports: &mut Ports) -> Option<u32> {
        let mut at = self.table.least_used();
        let may_write_back = self.may_write_back(now);
        for _ in 0..LOOK_AT {
            let block = at?;
            ports.steps += 1;
            let dirty = self.table.state(block) == State::Dirty;
            let trimmed = self.is_trimmed(self.table.key(block));
            if dirty && self.table.generation(block) >= self.commit.stable_generation {
                self.commit.wanted |= !self.table.has(block, ON_LOG);
            } else if !self.table.has(block, LOCKED) && !trimmed && (!dirty || may_write_back) {
                return Some(block);
            }
            at = self.table.more_used_than(block);
        }
        None
    }

    /// A block that is not being changed leaves the cache: the slow device has it, or nobody needs it.
    pub(super) fn give_up(&mut self, block: u32) {
        self.table.remove_used(block);
        self.table.unindex(block);
        if self.table.has(block, ON_LOG) {
            self.retire(block);
        } else {
            self.free(block);
        }
    }

    /// Off all lists and out of the index; free after its tombstone.
    fn retire(&mut self, block: u32) {
        self.table.set_state(block, State::Retired);
        self.commit.evicted.push(block);
        self.retiring += 1;
        self.bypass.leaves(self.table.key(block));
        self.delay_trims(self.table.key(block));
    }

    /// A dirty block was written to the slow device, or could not be.
    pub(super) fn on_written_back(
        &mut self,
        now: Time,
        (block, epoch): (u32, u32),
        result: Result<(), IoError>,
        ports: &mut Ports,
    ) {
        self.write_back.under_way -= 1;
        match result {
            Ok(()) if epoch == self.write_back.epoch => self.write_back.written.push(block),
            // A sync has failed since: whether it was kept is unknown.
            Ok(()) => self.keep(now, block, ports),
            Err(error) => {
                self.write_back_failed(now, error, ports);
                self.keep(now, block, ports);
            }
        }
        self.sync_if_due(now, ports);
    }

    fn sync_if_due(&mut self, now: Time, ports: &mut Ports) {
        let WriteBack { under_way, written, syncing, epoch, syncing_epoch, .. } = &mut self.write_back;
        let due = *under_way == 0 || written.len() >= SYNC_AFTER;
        let (Some(&block), true) = (written.first(), due && syncing.is_empty()) else { return };
        std::mem::swap(written, syncing);
        *syncing_epoch = *epoch;
        let disk = DiskId(super::table::disk_of(self.table.key(block)));
        let owner = Owner::WriteBackSync { partition: self.id };
        ports.enqueue(
            now,
            NewIo {
                owner,
                disk,
                device: Device::Slow,
                op: DeviceOp::Flush,
                offset_bytes: 0,
                len_bytes: 0,
                data: Data::None,
                wants_crc: false,
            },
        );
    }

    pub(super) fn on_write_back_sync(&mut self, now: Time, result: Result<(), IoError>, ports: &mut Ports) {
        let mut synced = std::mem::take(&mut self.write_back.syncing);
        match result {
            // Another sync has failed meanwhile, and took with it that this one would have: the kernel tells a failure once.
            Ok(()) if self.write_back.syncing_epoch != self.write_back.epoch => {
                synced.drain(..).for_each(|block| self.keep(now, block, ports));
            }
            Ok(()) => {
                self.write_back.trouble = None;
                for block in synced.drain(..) {
                    self.table.stop_writing(block);
                    self.table.clear(block, WRITING);
                    self.table.unindex(block);
                    self.retiring -= 1;
                    self.retire(block);
                    self.unlock(now, block, ports);
                }
            }
            Err(error) => {
                self.write_back_failed(now, error, ports);
                synced.drain(..).for_each(|block| self.keep(now, block, ports));
            }
        }
        self.write_back.syncing = synced;
        self.sync_if_due(now, ports);
    }

    /// A sync of the slow device has failed, of this partition or another: what was written to it before and is not known to be stable may
    /// have gone with it, of all disks.
    pub(crate) fn slow_sync_failed(&mut self, now: Time, error: IoError, ports: &mut Ports) {
        self.write_back.epoch = self.write_back.epoch.wrapping_add(1);
        self.past_sync_failed(error, ports);
        let written = std::mem::take(&mut self.write_back.written);
        written.into_iter().for_each(|block| self.keep(now, block, ports));
    }

    /// Stays dirty in the cache, the only place that has it.
    fn keep(&mut self, now: Time, block: u32, ports: &mut Ports) {
        self.retiring -= 1;
        self.table.stop_writing(block);
        self.table.clear(block, WRITING);
        self.table.insert_used(block);
        self.unlock(now, block, ports);
    }
}
