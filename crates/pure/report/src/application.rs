//! An application on several sides: the sentences a reader takes away, its numbers, and its page.

use maud::html;
use virtbench_model::ApplicationAnalysis;
use virtbench_record::ApplicationTable;

use crate::figures;
use crate::page::{document, facts, opening, section};
use crate::tables::every_figure;
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
        document(title, env!("CARGO_PKG_VERSION"), &content)
    }
}
