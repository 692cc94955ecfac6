//! How a quantity changed, and what follows.

use serde::Serialize;

use super::independent::{LogRatio, Sides};
use crate::interval::Span;
use crate::pairwise::{Margin, VERDICT_CONFIDENCE};
use crate::quantity::{Direction, Quantity};

/// How a quantity changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// What was compared.
    pub quantity: Quantity,
    /// After as a multiple of before; of points, the geometric mean. Infinite or not a number where before nothing was completed.
    pub ratio: f64,
    /// Its lower and upper end at 90 % confidence; none where a side was measured once, or completed nothing.
    pub interval: Option<[f64; 2]>,
    /// What follows for this change by itself, wrong with a probability of at most 5 %. Without an interval it is read from
    /// the ratio alone.
    pub verdict: Direction,
    /// Whether it is worse even when it is allowed for that many changes were looked at: all such changes of two runs
    /// together are false with a probability of at most 5 %.
    pub regression: bool,
}

impl Change {
    /// What became of a quantity among these changes.
    #[must_use]
    pub fn find(changes: &[Self], quantity: Quantity) -> Option<&Self> {
        changes.iter().find(|change| change.quantity == quantity)
    }

    /// What follows from a ratio; `careful` is the confidence that allows for how much is looked at.
    pub(super) fn of_ratio(quantity: Quantity, ratio: &LogRatio, margin: Margin, careful: f64) -> Self {
        let value = ratio.ratio();
        let judged = |span: Option<Span>| {
            let span = span.unwrap_or(Span { low: value, high: value });
            Direction::of(margin.finding(span), quantity.better())
        };
        let interval = ratio.interval(VERDICT_CONFIDENCE);
        let careful = ratio.interval(careful);
        Self {
            quantity,
            ratio: value,
            interval: interval.map(|span| [span.low, span.high]),
            verdict: judged(interval),
            regression: careful.is_some() && judged(careful) == Direction::Worse,
        }
    }

    /// What follows from the repetitions of two sides.
    pub(super) fn of_sides(quantity: Quantity, sides: &Sides, margin: Margin, careful: f64) -> Self {
        let idle = |ratio: f64, verdict: Direction| Self {
            quantity,
            ratio,
            interval: None,
            verdict,
            regression: verdict == Direction::Worse,
        };
        match sides {
            Sides::Ratio(ratio) => Self::of_ratio(quantity, ratio, margin, careful),
            Sides::Stopped => idle(quantity.worst(), Direction::Worse),
            Sides::Began => idle(1.0 / quantity.worst(), Direction::Better),
            Sides::Neither => idle(f64::NAN, Direction::Undecided),
        }
    }

    /// Whether the side after completed nothing.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.verdict == Direction::Worse && self.ratio == self.quantity.worst()
    }

    /// Whether it was judged by more than single values.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.interval.is_some() || self.is_stopped()
    }

    /// The same figures, of which nothing follows.
    pub(super) fn withheld(self) -> Self {
        if self.is_stopped() {
            return self;
        }
        Self { verdict: Direction::Undecided, regression: false, ..self }
    }
}
