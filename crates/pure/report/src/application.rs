//! An application on several sides: the sentences a reader takes away, its numbers, and its page.

use maud::{Markup, html};
use virtbench_model::ApplicationAnalysis;
use virtbench_record::{ApplicationTable, Quantity};

use crate::figures;
use crate::format::{ratio, ratio_span, significant};
use crate::page::{document, facts, opening, section};
use crate::takeaway::{Takeaway, of_application};

/// A table of an application's results with what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct ApplicationPage<'a> {
    /// The table.
    pub table: &'a ApplicationTable,
    /// What follows from it.
    pub analysis: &'a ApplicationAnalysis,
}

impl ApplicationPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        of_application(self.analysis)
    }

    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = self.table.facts.get("title").unwrap_or("An application on several sides");
        let place = self.table.facts.get("host").unwrap_or("a table of results");
        let drawn: Vec<_> = figures::growth(self.analysis).into_iter().collect();
        let content = html! {
            (opening(title, place, &self.takeaway(), &html! {}))
            @if !drawn.is_empty() { (section("cycles", "Why a transaction costs what it does", "", &drawn)) }
            section aria-labelledby="sides" {
                h2 id="sides" { "Every figure" }
                (every_figure(self.analysis))
            }
            section aria-labelledby="provenance" {
                h2 id="provenance" { "Provenance" }
                (facts(&self.table.facts))
            }
        };
        document(title, env!("CARGO_PKG_VERSION"), &content, drawn.iter())
    }
}

/// A row for each quantity that some side knows, with a column for each side and each ratio.
fn every_figure(analysis: &ApplicationAnalysis) -> Markup {
    let is_known = |quantity: &Quantity| analysis.sides.iter().any(|side| side.known.contains_key(quantity));
    let reference = analysis.sides.first().map_or("", |side| &side.name);
    html! {
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
