//! The books of the rotation: a few sums at each change of slot and at both ends of a batch, none for each I/O.

use crate::account::SlotAccount;
use crate::types::{Device, Time};

/// Accounts by queue.
#[derive(Debug)]
pub(super) struct Books {
    /// The account of each slot; unassigned ones share the last one.
    of_slot: Vec<usize>,
    accounts: Vec<SlotAccount>,
    /// The current slot has been used.
    used: bool,
    /// When the batch that is out on each device was sent, and what it was predicted to take.
    sent: [(Time, u64); 2],
}

impl Books {
    /// For slots of these queues, of so many.
    pub(super) fn new(of_slot: impl Iterator<Item = Option<usize>>, queues: usize) -> Self {
        let of_slot: Vec<usize> = of_slot.map(|queue| queue.unwrap_or(queues)).collect();
        let mut books = Self {
            of_slot,
            accounts: vec![SlotAccount::default(); queues + 1],
            used: false,
            sent: [(Time::ZERO, 0); 2],
        };
        books.begun(0);
        books
    }

    /// The turn of slot 0 that has just begun is that of other owners' slots: of these queues, each going on with the
    /// accounts of the queue in `from`, and owed so much. What is begun is told anew.
    pub(super) fn reassign(
        &mut self,
        of_slot: impl Iterator<Item = Option<usize>>,
        from: &[usize],
        balance_ns: &[i64],
    ) {
        self.account_mut(0).slots -= 1;
        let unassigned = self.accounts.len() - 1;
        let accounts = from.iter().enumerate().map(|(queue, was)| {
            // What several go on with is counted once, for those who had it.
            if queue == *was { self.accounts[queue] } else { SlotAccount::default() }
        });
        self.accounts = accounts.chain([self.accounts[unassigned]]).collect();
        self.of_slot = of_slot.map(|queue| queue.unwrap_or(unassigned)).collect();
        self.accounts.iter_mut().for_each(|account| account.balance_ns = 0);
        for (slot, owed_ns) in balance_ns.iter().enumerate() {
            self.owed(slot, *owed_ns);
        }
    }

    pub(super) const fn slots(&self) -> usize {
        self.of_slot.len()
    }

    pub(super) fn account(&self, queue: usize) -> SlotAccount {
        self.accounts[queue]
    }

    fn account_mut(&mut self, slot: usize) -> &mut SlotAccount {
        &mut self.accounts[self.of_slot[slot]]
    }

    /// The turn of `slot` has come.
    pub(super) fn begun(&mut self, slot: usize) {
        self.used = false;
        self.account_mut(slot).slots += 1;
    }

    /// It came and went so many times.
    pub(super) fn leapt(&mut self, slot: usize, times: u64) {
        self.account_mut(slot).slots += times;
    }

    /// It ended so long before or after its time.
    pub(super) fn ended(&mut self, slot: usize, early_ns: u64, late_ns: u64) {
        let account = self.account_mut(slot);
        account.credit.add(early_ns);
        account.overrun.add(late_ns);
    }

    /// What it is owed has become so much more.
    pub(super) fn owed(&mut self, slot: usize, more_ns: i64) {
        let account = self.account_mut(slot);
        account.balance_ns = account.balance_ns.saturating_add(more_ns);
    }

    /// A batch goes to a device in the turn of `slot`.
    pub(super) fn sent(&mut self, slot: usize, device: Device, now: Time, predicted_ns: u64) {
        self.sent[device.index()] = (now, predicted_ns);
        if !std::mem::replace(&mut self.used, true) {
            self.account_mut(slot).used += 1;
        }
    }

    /// It is back as a whole, still in the turn of `slot`.
    pub(super) fn returned(&mut self, slot: usize, device: Device, now: Time) {
        let (sent, predicted_ns) = self.sent[device.index()];
        self.account_mut(slot).predictions[device.index()].add(predicted_ns, now.since(sent));
    }
}
