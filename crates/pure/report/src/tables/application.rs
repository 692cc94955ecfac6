//! Everything that is known of an application, side by side.

use maud::{Markup, html};
use virtbench_model::ApplicationAnalysis;
use virtbench_record::Quantity;

use crate::format::{ratio, ratio_span, significant};

/// A row for each quantity that some side knows, with a column for each side and each ratio.
pub(crate) fn every_figure(analysis: &ApplicationAnalysis) -> Markup {
    let is_known = |quantity: &Quantity| analysis.sides.iter().any(|side| side.known.contains_key(quantity));
    let reference = analysis.sides.first().map_or("", |side| &side.name);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "figure" }
                    @for side in &analysis.sides { th.number scope="col" { (side.name) } }
                    @for against in &analysis.ratios {
                        th.number scope="col" { (analysis.sides[against.side].name) " / " (reference) }
                    }
                } }
                tbody {
                    @for quantity in Quantity::ALL.into_iter().filter(is_known) {
                        tr {
                            th scope="row" { (quantity.name()) }
                            @for side in &analysis.sides {
                                td.number { @match side.known.get(&quantity) {
                                    Some(known) => { (significant(known.mean)) @if let Some(span) = known.span() {
                                        " " small { (significant(span.low)) " to " (significant(span.high)) } } }
                                    None => "–",
                                } }
                            }
                            @for against in &analysis.ratios {
                                td.number { @match against.ratios.get(&quantity) {
                                    Some(known) => { (ratio(known.value)) @if let Some(span) = known.interval {
                                        " " small { (ratio_span(span)) } } }
                                    None => "–",
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}
