//! Cells of a table: numbers with their intervals.

use maud::{Markup, html};
use virtbench_model::{Estimate, Ratio};

use crate::format::{ratio, ratio_span, significant};

/// A mean times `factor`, with its interval.
pub(super) fn estimate(known: Option<Estimate>, factor: f64) -> Markup {
    html! {
        td.number { @match known {
            Some(known) => { (significant(known.mean * factor)) @if let Some(span) = known.span() {
                " " small { (significant(span.low * factor)) " to " (significant(span.high * factor)) } } }
            None => "–",
        } }
    }
}

/// How many times another one it is.
pub(super) fn times(known: Option<Ratio>) -> Markup {
    html! {
        td.number { @match known {
            Some(known) => { (ratio(known.value)) @if let Some(span) = known.interval {
                " " small { (ratio_span(span)) } } }
            None => "–",
        } }
    }
}
