//! Time slots that are not work-conserving ([VirtualFence 2013], section 6.3).
//!
//! Slots take turns. In its slot a disk may dispatch, one batch at a time on each device, the largest that is predicted
//! to fit into what remains; an unassigned or idle slot passes unused. A slot that ends before its time is credited the
//! rest, one that overruns is debited, both when its turn comes again.

mod clock;
mod queues;

pub use queues::{SlotOwner, SlotsConfig};

use std::any::Any;
use std::collections::VecDeque;

use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler};
use crate::types::{Account, Device, DiskId, Time};
use clock::{Books, SlotClock};
use queues::{Queues, SlowBatch};

/// The scheduler of `VirtualFence`.
#[derive(Debug)]
pub struct Slots {
    config: SlotsConfig,
    /// In its place from the next rotation on.
    next: Option<SlotsConfig>,
    clock: SlotClock,
    queues: Queues,
    /// In the current slot, by device.
    outstanding: [u32; 2],
    /// Chosen and not yet picked.
    staged: VecDeque<QueuedIo>,
    batch: SlowBatch,
    /// The current slot gave up its rest: the next slow access does not fit.
    ending: bool,
    /// Where each queue's last slow access will end, as a byte offset. A driver instance serves one disk and knows its
    /// own requests only (section 6.1), so it predicts from them (section 6.3); the head's way from another disk's
    /// partition is an overrun, which the slot is debited for. Predicted from where the head is, the first access
    /// would often not fit, and its slot would pass for a seek that has to be made sooner or later.
    heads: Vec<u64>,
}

impl Slots {
    /// A rotation whose first slot begins at [`Time::ZERO`]. `config` must be valid for `disks` disks.
    #[must_use]
    pub fn new(config: SlotsConfig, disks: usize) -> Self {
        let queues = Queues::new(&config.owners, disks);
        let of_slot = (0..config.owners.len()).map(|slot| queues.of_slot(slot));
        Self {
            clock: SlotClock::new(Books::new(of_slot, disks + 1), config.slot_ns),
            queues,
            outstanding: [0; 2],
            staged: VecDeque::new(),
            batch: SlowBatch::default(),
            ending: false,
            heads: vec![0; disks + 1],
            next: None,
            config,
        }
    }

    fn idle(&self) -> bool {
        self.outstanding == [0; 2]
    }

    /// Slots that are over pass, and with them a rotation that was the last of its kind.
    fn pass_idle(&mut self, now: Time) {
        if self.next.is_some() && self.clock.pass_rotation(now) {
            self.adopt();
        }
        self.clock.pass_idle(now);
    }

    /// The current slot's work ended at `now`.
    fn next_slot(&mut self, now: Time) {
        self.clock.next_slot(now);
        self.ending = false;
        if self.clock.current() == 0 {
            self.adopt();
        }
    }

    /// A rotation begins: goes over to the next configuration, if there is one. Nothing is outstanding, so that nothing is
    /// staged either. Credit and debit stay with their owner.
    fn adopt(&mut self) {
        let Some(config) = self.next.take() else { return };
        let mut balance_ns = vec![0; config.owners.len()];
        for (owner, owed_ns) in self.config.owners.iter().zip(self.clock.balances_ns()) {
            if let Some(slot) = config.owners.iter().position(|other| other == owner) {
                balance_ns[slot] += owed_ns;
            }
        }
        let from = self.queues.reassign(&config.owners);
        let of_slot = (0..config.owners.len()).map(|slot| self.queues.of_slot(slot));
        self.clock.books.reassign(of_slot, &from, &balance_ns);
        self.clock.restart(config.slot_ns, balance_ns);
        self.heads = from.into_iter().map(|queue| self.heads[queue]).collect();
        self.config = config;
    }

    /// Ends slots whose time has come and fills the current one. At most two rotations of work.
    fn advance(&mut self, now: Time) {
        self.clock.tell(now);
        if self.idle() && !self.ending {
            self.pass_idle(now);
        }
        for _ in 0..=2 * self.config.owners.len() {
            if self.idle() && (self.ending || now >= self.clock.ends()) {
                self.next_slot(now);
            }
            self.fill(now);
            if !self.staged.is_empty() || !self.ending || !self.idle() {
                return;
            }
        }
    }

    /// Chooses the next batches of the current slot.
    fn fill(&mut self, now: Time) {
        let Some(queue) = self.queues.of_slot(self.clock.current()) else { return };
        let remaining_ns = self.clock.ends().since(now);
        let overrun = remaining_ns == 0;
        if self.ending {
            return;
        }
        if overrun {
            // One at a time, so as not to lengthen the overrun by waiting for many.
            if self.outstanding[Device::Slow.index()] > 0 {
                self.take_fast(now, queue, 1);
            }
            return;
        }
        if self.outstanding[Device::Slow.index()] == 0
            && self.queues.len(queue, Device::Slow) > 0
            && !self.take_slow(now, queue, remaining_ns)
        {
            self.ending = true;
            return;
        }
        if self.outstanding[Device::Fast.index()] > 0 {
            return;
        }
        let most = self.queues.len(queue, Device::Fast).min(self.config.max_batch as usize);
        let fits = self.config.predict.fast.largest(remaining_ns, most);
        self.take_fast(now, queue, fits);
    }

    fn take_fast(&mut self, now: Time, queue: usize, count: usize) {
        let count = count.min(self.queues.len(queue, Device::Fast));
        if self.outstanding[Device::Fast.index()] > 0 || count == 0 {
            return;
        }
        for _ in 0..count {
            let Some(io) = self.queues.pop(queue, Device::Fast) else { break };
            self.outstanding[Device::Fast.index()] += 1;
            self.staged.push_back(io);
        }
        let predicted_ns = self.config.predict.fast.batch_ns(count);
        self.clock.books.sent(self.clock.current(), Device::Fast, now, predicted_ns);
    }

    /// False if the first pending access does not fit.
    fn take_slow(&mut self, now: Time, queue: usize, remaining_ns: u64) -> bool {
        let predict = &self.config.predict.slow;
        self.batch.begin(self.heads[queue]);
        while self.batch.len() < self.config.max_batch as usize {
            let Some(io) = self.queues.front(queue, Device::Slow) else { break };
            if !self.batch.add(predict, *io, remaining_ns) {
                if self.batch.len() == 0 {
                    return false;
                }
                break;
            }
            self.queues.pop(queue, Device::Slow);
            self.outstanding[Device::Slow.index()] += 1;
        }
        self.clock.books.sent(self.clock.current(), Device::Slow, now, self.batch.predicted_ns());
        self.heads[queue] = self.batch.finish(&mut self.staged);
        true
    }
}

impl Scheduler for Slots {
    fn enqueue(&mut self, now: Time, io: QueuedIo) {
        if self.idle() && !self.ending {
            self.pass_idle(now);
        }
        self.queues.push(io);
    }

    fn completed(&mut self, now: Time, io: &QueuedIo) {
        self.outstanding[io.device.index()] -= 1;
        if self.outstanding[io.device.index()] == 0 {
            self.clock.books.returned(self.clock.current(), io.device, now);
        }
        if self.idle() && (self.ending || now >= self.clock.ends()) {
            self.next_slot(now);
        }
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        if self.staged.is_empty() {
            self.advance(now);
        }
        self.staged.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        // While nothing waits the rotation needs no waking: it is caught up with when something comes. In an overrun
        // the outstanding I/Os end the slot.
        let waits = !self.queues.is_empty() && (self.idle() || !self.clock.has_ended());
        waits.then(|| self.clock.ends())
    }

    fn reconfigure(&mut self, config: &dyn Any) -> bool {
        let Some(slots) = config.downcast_ref::<SlotsConfig>() else { return false };
        self.next = Some(slots.clone());
        true
    }

    fn queued(&self) -> usize {
        self.queues.total() + self.staged.len()
    }

    fn account(&self, _now: Time, disk: DiskId) -> Option<Account> {
        Some(Account::Slots(self.clock.books.account(self.queues.of_disk(disk)?)))
    }
}

impl Policy for SlotsConfig {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        Self::validate(self, disks)
    }

    fn scheduler(&self, _depth: [u32; 2], disks: usize) -> Box<dyn Scheduler> {
        Box::new(Slots::new(self.clone(), disks))
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
