//! Whose turn it is, since when and until when; what each slot is owed or owes.

use super::books::Books;
use crate::types::Time;

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
