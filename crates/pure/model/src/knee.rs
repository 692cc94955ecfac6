//! A search for the most of something that fits: doubled until it is too many, then halved in between until two neighbours are
//! known.

use std::collections::BTreeSet;

/// Which numbers are measured.
pub(crate) enum Numbers<'a> {
    /// These, in this order.
    Given(&'a [u32]),
    /// Those of a search.
    Search {
        /// The most that is tried.
        most: u32,
        /// What was tried and is to be repeated.
        tried: BTreeSet<u32>,
        /// What it has found so far; asked for when all repetitions are there.
        bracket: &'a dyn Fn() -> Bracket,
    },
}

/// What a study still has to measure, from what its run folder holds.
pub(crate) struct Course<'a> {
    pub(crate) numbers: Numbers<'a>,
    pub(crate) repetitions: u32,
    /// Whether a repetition of a number is there.
    pub(crate) is_there: &'a dyn Fn(u32, u32) -> bool,
}

impl Course<'_> {
    fn missing(&self, number: u32) -> impl Iterator<Item = u32> {
        (0..self.repetitions).filter(move |repetition| !(self.is_there)(number, *repetition))
    }

    /// The next number and which repetition it is; nothing once everything is there.
    pub(crate) fn next(&self) -> Option<(u32, u32)> {
        let missing = |number: u32| self.missing(number).next().map(|repetition| (number, repetition));
        match &self.numbers {
            Numbers::Given(numbers) => numbers.iter().copied().find_map(missing),
            Numbers::Search { most, tried, bracket } => {
                tried.iter().copied().find_map(missing).or_else(|| missing(bracket().next(*most)?))
            }
        }
    }

    /// How many measurements are left at most. Nobody knows of a search that has not gone too far yet.
    pub(crate) fn left(&self) -> Option<u64> {
        let unfinished = |numbers: &BTreeSet<u32>| -> u64 {
            numbers.iter().map(|number| self.missing(*number).count() as u64).sum()
        };
        Some(match &self.numbers {
            Numbers::Given(numbers) => unfinished(&numbers.iter().copied().collect()),
            Numbers::Search { tried, bracket, .. } => {
                u64::from(bracket().left()?) * u64::from(self.repetitions) + unfinished(tried)
            }
        })
    }
}

/// What a search has found so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bracket {
    /// The most that fit; 0 for none.
    pub(crate) fits: u32,
    /// The fewest that are too many.
    pub(crate) too_many: Option<u32>,
}

impl Bracket {
    /// The next number to try of up to `most`; nothing once both neighbours are known, or `most` fit.
    pub(crate) fn next(self, most: u32) -> Option<u32> {
        match self.too_many {
            None => (self.fits < most).then(|| (self.fits * 2).clamp(1, most)),
            Some(too_many) => (too_many > self.fits + 1).then(|| self.fits.midpoint(too_many)),
        }
    }

    /// How many more numbers are tried at most. Nobody knows before one was too many.
    pub(crate) fn left(self) -> Option<u32> {
        let between = self.too_many?.saturating_sub(self.fits).max(1);
        Some(u32::BITS - (between - 1).leading_zeros())
    }
}
