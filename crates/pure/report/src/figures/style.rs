//! What all figures have in common.

use virtbench_chart::{Axis, Dash, Look, Rule, Shape, look};
use virtbench_model::Span;

use crate::run::RunSide;

/// Colours of the style sheet by what they stand for.
pub(super) const BETTER: u8 = 2;
pub(super) const WORSE: u8 = 1;
pub(super) const INK: u8 = 6;
pub(super) const GREY: u8 = 7;

/// How a side is drawn everywhere.
pub(super) fn look_of(side: &RunSide) -> Look {
    match side.index {
        1 => look(1).shaped(Shape::Square),
        index => look(index),
    }
}

/// Rows with these names.
pub(super) fn rows(names: &[String]) -> Axis {
    Axis::categories("", names.to_vec())
}

/// A dashed line in grey.
pub(super) fn dashed_rule(at: f64, label: impl Into<String>) -> Rule {
    Rule { at, label: label.into(), look: Look::of_colour(GREY).dashed(Dash::Dashed) }
}

/// Both ends of an interval.
pub(super) fn ends(span: Span) -> [f64; 2] {
    [span.low, span.high]
}
