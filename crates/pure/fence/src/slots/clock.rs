//! Whose turn it is, since when and until when; what each slot is owed or owes.

use crate::types::{Device, SlotAccount, Time};

/// The rotation.
#[derive(Debug)]
pub(super) struct SlotClock {
    slot_ns: u64,
    current: usize,
    starts: Time,
    ends: Time,
    /// Credit (positive) or debit of each slot, settled when its turn comes.
    balance_ns: Vec<i64>,
    now: Time,
    pub(super) books: Books,
}

impl SlotClock {
    pub(super) fn new(books: Books, slot_ns: u64) -> Self {
        let ends = Time::ZERO.after(slot_ns);
        let balance_ns = vec![0; books.slots()];
        Self { slot_ns, current: 0, starts: Time::ZERO, ends, balance_ns, now: Time::ZERO, books }
    }

    pub(super) const fn current(&self) -> usize {
        self.current
    }

    pub(super) const fn ends(&self) -> Time {
        self.ends
    }

    pub(super) const fn tell(&mut self, now: Time) {
        self.now = now;
    }

    /// As of the last time told.
    pub(super) fn has_ended(&self) -> bool {
        self.now >= self.ends
    }

    /// The current slot's work ended at `now`: credits or debits it, and begins the next.
    pub(super) fn next_slot(&mut self, now: Time) {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let (early_ns, late_ns) = (self.ends.since(now), now.since(self.ends));
        let more_ns = signed(early_ns) - signed(late_ns);
        self.balance_ns[self.current] += more_ns;
        self.books.ended(self.current, early_ns, late_ns);
        self.books.owed(self.current, more_ns);
        self.begin(now);
    }

    /// Nothing was outstanding: slots end at their times, those that are over included, with neither credit nor debit.
    pub(super) fn pass_idle(&mut self, now: Time) {
        // One rotation settles every balance but debits longer than a slot, which a longer idle time forgives.
        for _ in 0..self.balance_ns.len() {
            if now < self.ends {
                return;
            }
            self.begin(self.ends);
        }
        if now < self.ends {
            return;
        }
        let rotation_ns = self.slot_ns * self.balance_ns.len() as u64;
        let rotations = now.since(self.starts) / rotation_ns;
        self.starts = self.starts.after(rotations * rotation_ns);
        self.ends = self.ends.after(rotations * rotation_ns);
        for (slot, balance) in self.balance_ns.iter_mut().enumerate() {
            self.books.leapt(slot, rotations);
            self.books.owed(slot, -std::mem::take(balance));
        }
        for _ in 0..self.balance_ns.len() {
            if now < self.ends {
                return;
            }
            self.begin(self.ends);
        }
    }

    /// The same up to the end of the rotation. True if that is over.
    pub(super) fn pass_rotation(&mut self, now: Time) -> bool {
        for _ in 0..self.balance_ns.len() {
            if now < self.ends {
                return false;
            }
            self.begin(self.ends);
            if self.current == 0 {
                return true;
            }
        }
        false
    }

    /// What each slot is owed or owes at the beginning of a rotation, the first included though its turn has come.
    pub(super) fn balances_ns(&self) -> Vec<i64> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut balances = self.balance_ns.clone();
        balances[0] += signed(self.ends.since(self.starts)) - signed(self.slot_ns);
        balances
    }

    /// The rotation that has just begun is one of other slots, which are owed or owe so much.
    pub(super) fn restart(&mut self, slot_ns: u64, balance_ns: Vec<i64>) {
        self.slot_ns = slot_ns;
        self.current = balance_ns.len().saturating_sub(1);
        self.balance_ns = balance_ns;
        self.begin(self.starts);
    }

    fn begin(&mut self, start: Time) {
        self.current = (self.current + 1) % self.balance_ns.len();
        let balance = std::mem::take(&mut self.balance_ns[self.current]);
        let length = i64::try_from(self.slot_ns).unwrap_or(i64::MAX).saturating_add(balance);
        if length < 0 {
            self.balance_ns[self.current] = length;
        }
        self.books.begun(self.current);
        self.books.owed(self.current, self.balance_ns[self.current] - balance);
        self.starts = start;
        self.ends = start.after(u64::try_from(length).unwrap_or(0));
    }
}

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
