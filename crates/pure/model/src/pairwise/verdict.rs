//! Whether two configurations differ by more than a margin, are equivalent within it, or neither.
//!
//! "Not shown to differ" is not "equal": two noisy runs never differ with confidence. Equivalence is
//! therefore tested for itself, by two one-sided tests (D. J. Schuirmann, "A Comparison of the Two
//! One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average
//! Bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987): at the level
//! [`LEVEL`] they both succeed exactly where the interval of confidence 1 - 2 x [`LEVEL`] lies inside
//! the margin. The same interval lies wholly beyond one end of the margin exactly where a one-sided
//! test of that level shows a difference of more than the margin. So one interval gives every
//! verdict, and each is wrong with a probability of at most [`LEVEL`].
//!
//! The margin is one of ratios: 5 % means 1/1.05 to 1.05, so that a verdict does not depend on which
//! of the two is named first.
//!
//! Levels hold for each verdict by itself. They are not adjusted for the number of points and pairs:
//! a reader asks about his own kind of I/O, not whether any of hundreds differs, and an adjustment
//! (Holm) would make the verdict on one point depend on how many others were measured. Of a hundred
//! verdicts some five may thus be wrong, which [`super::Tally`] lets a report say. A ranking is one
//! statement on all its configurations, and is adjusted ([`super::Standing::against_best`]).

use crate::interval::Span;
use crate::ratio::Ratio;

/// The most probability with which a verdict given with confidence is wrong.
pub const LEVEL: f64 = 0.05;

/// Confidence of the intervals that verdicts are read from.
pub const VERDICT_CONFIDENCE: f64 = 1.0 - 2.0 * LEVEL;

/// The largest margin: beyond twice as much nobody would say equivalent.
const MARGIN_MOST: f64 = 1.0;

/// How much more counts as the same, as a share: 0.05 is 5 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin(f64);

impl Margin {
    /// A margin of this share, above 0 and at most 1; nothing for any other.
    #[must_use]
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= MARGIN_MOST).then_some(Self(share))
    }

    /// The share.
    #[must_use]
    pub fn share(self) -> f64 {
        self.0
    }

    /// What can be said of a ratio that lies in `span`.
    #[must_use]
    pub fn finding(self, span: Span) -> Finding {
        let inside = self.span();
        if span.low > inside.high {
            Finding::Higher
        } else if span.high < inside.low {
            Finding::Lower
        } else if inside.contains(span.low) && inside.contains(span.high) {
            Finding::Equivalent
        } else {
            Finding::Undecided
        }
    }

    /// The ratios that are inside.
    #[must_use]
    pub fn span(self) -> Span {
        Span { low: 1.0 / (1.0 + self.0), high: 1.0 + self.0 }
    }
}

impl Default for Margin {
    fn default() -> Self {
        Self(0.05)
    }
}

/// What can be said of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Higher by more than the margin.
    Higher,
    /// Lower by more than the margin.
    Lower,
    /// Within the margin.
    Equivalent,
    /// The interval reaches across an end of the margin: more repetitions would tell.
    Undecided,
}

impl Finding {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        }
    }

    /// Of the reciprocal.
    #[must_use]
    pub fn swapped(self) -> Self {
        match self {
            Self::Higher => Self::Lower,
            Self::Lower => Self::Higher,
            same => same,
        }
    }
}

/// A ratio and what can be said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The ratio, with an interval of [`VERDICT_CONFIDENCE`], or wider in a ranking.
    pub ratio: Ratio,
    /// What can be said of it. Without an interval it is read from the value alone: nothing is known
    /// of the spread, and no confidence goes with it.
    pub finding: Finding,
}

impl Judged {
    /// Judges a ratio, whose interval must be of [`VERDICT_CONFIDENCE`] at least.
    #[must_use]
    pub fn new(ratio: Ratio, margin: Margin) -> Self {
        let span = ratio.interval.unwrap_or(Span { low: ratio.value, high: ratio.value });
        Self { ratio, finding: margin.finding(span) }
    }

    /// Whether the spread is known, so that the finding comes with confidence.
    #[must_use]
    pub fn has_spread(&self) -> bool {
        self.ratio.interval.is_some()
    }

    /// The other way round.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let reciprocal = |span: Span| Span { low: 1.0 / span.high, high: 1.0 / span.low };
        Self {
            ratio: Ratio {
                value: 1.0 / self.ratio.value,
                interval: self.ratio.interval.map(reciprocal),
                ..self.ratio
            },
            finding: self.finding.swapped(),
        }
    }
}
