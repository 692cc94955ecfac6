//! The page of configurations compared with each other: a study of adapters, or somebody's table.

use maud::{Markup, html};
use virtbench_record::{Plan, PointRecord, Provenance, TableFacts};

use super::document;
use crate::analysed::{Analysed, Source};
use crate::figures;
use crate::outline::{Head, Section};
use crate::{provenance, tables};

impl Analysed<'_> {
    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        page(self)
    }
}

/// What it says, and its figures.
pub(crate) fn head(analysed: &Analysed<'_>) -> Head<1> {
    let (title, place) = match &analysed.source {
        Source::Run { provenance, .. } => (
            match &provenance.plan {
                Plan::Compare(_) => "Storage of several machines".to_owned(),
                _ => "Virtual disk adapters and backings".to_owned(),
            },
            provenance::place(provenance),
        ),
        Source::Table(table) => (
            table.facts.get("title").unwrap_or("Configurations compared").to_owned(),
            table.facts.get("host").unwrap_or("a table of results").to_owned(),
        ),
    };
    let figures = figures::over_block_sizes(&analysed.analysis);
    Head {
        title,
        place,
        takeaway: analysed.takeaway(),
        sections: [Section::new("figures", "Over block sizes", "Nothing was measured.", figures)],
    }
}

fn page(analysed: &Analysed<'_>) -> String {
    let analysis = &analysed.analysis;
    let head = head(analysed);
    let [figures] = &head.sections;
    let version = match &analysed.source {
        Source::Run { provenance, .. } => provenance.version.as_str(),
        Source::Table(_) => env!("CARGO_PKG_VERSION"),
    };
    let content = html! {
        (head.plain_opening())
        section aria-labelledby="kinds" {
            h2 id="kinds" { "Which one for which kind of I/O" }
            (tables::kinds(analysis))
        }
        (figures.markup())
        section aria-labelledby="pairs" {
            h2 id="pairs" { "Each against each" }
            (tables::matrices(analysis))
            (tables::verdicts(analysis))
        }
        @if let Source::Run { provenance, records } = &analysed.source {
            (of_run(provenance, records, &analysis.measurements.configurations))
        }
        section aria-labelledby="points" {
            h2 id="points" { "Every point" }
            (tables::points(analysis))
            @if let Source::Run { records, .. } = &analysed.source { (tables::repetitions(records)) }
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            @match &analysed.source {
                Source::Run { provenance, records } => (provenance::of_points(provenance, records)),
                Source::Table(table) => (facts(&table.facts)),
            }
        }
    };
    document(&head.title, version, &content)
}

/// What only a run knows: whose the CPU use was, and what its guests found.
fn of_run(provenance: &Provenance, records: &[PointRecord], configurations: &[String]) -> Markup {
    html! {
        section aria-labelledby="accounting" {
            h2 id="accounting" { "Whose the CPU use was" }
            @match tables::accounting(records, configurations) {
                Some(table) => (table),
                None => p { "No process was told apart in this run." },
            }
            @if provenance.idle.is_empty() {
                p { "What idle guests cost was not measured." }
            } @else {
                (tables::idle(&provenance.idle))
            }
        }
        @if !provenance.setups.is_empty() {
            section aria-labelledby="settings" {
                h2 id="settings" { "Settings as the guests found them" }
                (tables::settings(&provenance.setups))
            }
        }
    }
}

/// What the head of a table says.
pub(crate) fn facts(facts: &TableFacts) -> Markup {
    html! { dl.facts { @for (name, value) in &facts.0 { (provenance::fact(name, value)) } } }
}
