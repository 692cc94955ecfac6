//! A search for the most of something that fits: doubled until it is too many, then halved in between until two neighbours are
//! known.

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
