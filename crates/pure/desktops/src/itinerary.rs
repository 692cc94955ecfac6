//! What one user does, in which order.

use virtbench_units::{Random, SeedSequence};

use crate::day::Day;

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Which application of the day.
    pub application: usize,
    /// Which of its operations.
    pub operation: usize,
    /// The operation's number among all of the day: its number in markers.
    pub number: u8,
    /// How long the user thinks before, in nanoseconds.
    pub think_ns: u64,
}

/// What a user does, without end: all applications in a random order, then again in another one.
#[derive(Debug, Clone)]
pub struct Itinerary<'a> {
    day: &'a Day,
    random: Random,
    /// Applications of this round that are still to come, the next one last.
    left: Vec<usize>,
    /// How many operations of the last one are done.
    done: usize,
}

impl<'a> Itinerary<'a> {
    /// Of user `user`, from nought on. The same seed gives a user the same itinerary however many users there are.
    #[must_use]
    pub fn new(day: &'a Day, seed: u64, user: u32) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let seed = (0..user).fold(seeds.next_seed(), |_, _| seeds.next_seed());
        Self { day, random: Random::new(seed), left: Vec::new(), done: 0 }
    }

    fn shuffle(&mut self) {
        self.left = (0..self.day.applications.len()).collect();
        for at in (1..self.left.len()).rev() {
            let other = usize::try_from(self.random.below(at as u64 + 1)).unwrap_or(at);
            self.left.swap(at, other);
        }
    }
}

impl Iterator for Itinerary<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if self.left.is_empty() {
                self.shuffle();
            }
            let application = *self.left.last()?;
            if self.done == self.day.applications.get(application)?.operations.len() {
                self.done = 0;
                self.left.pop();
                continue;
            }
            let operation = self.done;
            self.done += 1;
            let before = self.day.applications[..application].iter().map(|one| one.operations.len());
            let number = u8::try_from(before.sum::<usize>() + operation).ok()?;
            let think = self.day.think;
            let think_ns = think.least + self.random.below(think.most - think.least + 1);
            return Some(Step { application, operation, number, think_ns });
        }
    }
}
