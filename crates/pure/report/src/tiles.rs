//! Tiles: the sentences a reader takes away, their numbers, and their page.

use maud::html;
use virtbench_model::TilesAnalysis;
use virtbench_record::TileTable;

use crate::figures;
use crate::page::{document, facts, opening, section};
use crate::tables::tiles;
use crate::takeaway::{Takeaway, of_tiles};

/// A table of tiles with what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct TilesPage<'a> {
    /// The table.
    pub table: &'a TileTable,
    /// What follows from it.
    pub analysis: &'a TilesAnalysis,
}

impl TilesPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        of_tiles(self.analysis)
    }

    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = self.table.facts.get("title").unwrap_or("Tiles");
        let place = self.table.facts.get("host").unwrap_or("a table of results");
        let drawn: Vec<_> = figures::tiles(self.analysis).into_iter().collect();
        let content = html! {
            (opening(title, place, &self.takeaway(), &html! {}))
            (section("score", "Score over tiles", "No run has a score.", &drawn))
            section aria-labelledby="counts" {
                h2 id="counts" { "Every number of tiles" }
                (tiles(self.analysis))
            }
            section aria-labelledby="provenance" {
                h2 id="provenance" { "Provenance" }
                (facts(&self.table.facts))
            }
        };
        document(title, env!("CARGO_PKG_VERSION"), &content)
    }
}
