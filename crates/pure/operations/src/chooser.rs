//! What comes next, and when it is meant to start.

use std::collections::BTreeMap;

use virtbench_record::OperationKind;
use virtbench_units::Random;

use crate::mix::Mix;
use crate::vms::{Choice, Vms};

/// The order of a round: what is made is there before it is used, and is taken away last. Others come first.
const ROUND: [OperationKind; 10] = [
    OperationKind::Clone,
    OperationKind::PowerOn,
    OperationKind::Migrate,
    OperationKind::Reset,
    OperationKind::CreateSnapshot,
    OperationKind::RevertSnapshot,
    OperationKind::DeleteSnapshot,
    OperationKind::Shutdown,
    OperationKind::PowerOff,
    OperationKind::Remove,
];

/// Deals a mix from shuffled decks. A card that is not legal at the moment is owed: it is played before any other as soon
/// as it is. No more than a deck is owed at any time, so shares never leave the mix by more than that.
#[derive(Debug, Clone)]
pub struct Chooser {
    mix: Mix,
    deck: Vec<OperationKind>,
    owed: BTreeMap<OperationKind, u32>,
    in_rounds: bool,
    random: Random,
}

impl Chooser {
    /// With this mix.
    #[must_use]
    pub fn new(mix: Mix, seed: u64) -> Self {
        Self { mix, deck: Vec::new(), owed: BTreeMap::new(), in_rounds: false, random: Random::new(seed) }
    }

    /// With the same mix and nothing owed. From now on a deck is played in one order in which every card becomes legal, a card
    /// once the one before it was played.
    #[must_use]
    pub fn in_rounds(&self, seed: u64) -> Self {
        Self { in_rounds: true, ..Self::new(self.mix.clone(), seed) }
    }

    /// What is to be done next, of what is legal; its VM is busy until it is [settled](Vms::settle). Nothing where
    /// whatever the mix demands is not legal.
    pub fn next(&mut self, vms: &mut Vms) -> Option<Choice> {
        let mut owed: Vec<OperationKind> = self.owed.keys().copied().collect();
        shuffle(&mut owed, &mut self.random);
        // What is rarely legal comes before what would take its chance away.
        owed.sort_by_key(|kind| std::cmp::Reverse(self.owed[kind]));
        for kind in owed {
            if let Some(choice) = vms.choose(kind, &mut self.random) {
                self.pay(kind);
                return Some(choice);
            }
        }
        if self.in_rounds {
            return self.next_in_order(vms);
        }
        while self.owed.values().sum::<u32>() < self.mix.total() {
            let kind = self.deal();
            // What is owed was tried just now.
            if !self.owed.contains_key(&kind)
                && let Some(choice) = vms.choose(kind, &mut self.random)
            {
                return Some(choice);
            }
            *self.owed.entry(kind).or_default() += 1;
        }
        None
    }

    /// The next card of the round, once it is legal. One that cannot become so, since nothing is in flight, is passed over.
    fn next_in_order(&mut self, vms: &mut Vms) -> Option<Choice> {
        for _ in 0..=self.mix.total() {
            if !self.owed.is_empty() {
                if !vms.is_idle() {
                    return None;
                }
                self.owed.clear();
            }
            let kind = self.deal();
            if let Some(choice) = vms.choose(kind, &mut self.random) {
                return Some(choice);
            }
            self.owed.insert(kind, 1);
        }
        None
    }

    /// What is owed: operations that were not legal when it was their turn.
    #[must_use]
    pub fn owed(&self) -> &BTreeMap<OperationKind, u32> {
        &self.owed
    }

    fn pay(&mut self, kind: OperationKind) {
        if let Some(count) = self.owed.get_mut(&kind) {
            *count -= 1;
            if *count == 0 {
                self.owed.remove(&kind);
            }
        }
    }

    fn deal(&mut self) -> OperationKind {
        loop {
            if let Some(kind) = self.deck.pop() {
                return kind;
            }
            let cards = self.mix.shares().iter();
            self.deck = cards.flat_map(|(kind, share)| (0..*share).map(|_| *kind)).collect();
            if self.in_rounds {
                // The last card is played first.
                let place = |kind: &OperationKind| ROUND.iter().position(|one| one == kind);
                self.deck.sort_by_key(|kind| std::cmp::Reverse(place(kind)));
            } else {
                shuffle(&mut self.deck, &mut self.random);
            }
        }
    }
}

fn shuffle(cards: &mut [OperationKind], random: &mut Random) {
    for last in (1..cards.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or(last);
        cards.swap(last, other);
    }
}

/// The intended starts of an open loop: a Poisson process, since many users act independently of each other. It never ends.
#[derive(Debug, Clone)]
pub struct Arrivals {
    random: Random,
    gap_ns: f64,
    at_ns: f64,
}

impl Arrivals {
    /// So many operations a minute.
    #[must_use]
    pub fn new(per_minute: f64, seed: u64) -> Self {
        Self { random: Random::new(seed), gap_ns: 60e9 / per_minute, at_ns: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    /// Nanoseconds from the beginning.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is not negative")]
    fn next(&mut self) -> Option<u64> {
        self.at_ns -= (1.0 - self.random.unit()).ln() * self.gap_ns;
        Some(self.at_ns as u64)
    }
}

#[cfg(test)]
#[path = "chooser_tests.rs"]
mod chooser_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_arrive_as_are_asked_for() {
        for (per_minute, seed) in [(100.0, 1), (500.0, 2)] {
            let hour = Arrivals::new(per_minute, seed).take_while(|at| *at < 3_600_000_000_000).count();
            let expected = per_minute * 60.0;
            assert!((hour as f64 - expected).abs() < 4.0 * expected.sqrt(), "{hour}");
        }
        let starts: Vec<u64> = Arrivals::new(100.0, 3).take(1000).collect();
        assert!(starts.is_sorted());
        assert_eq!(starts, Arrivals::new(100.0, 3).take(1000).collect::<Vec<_>>());
    }
}
