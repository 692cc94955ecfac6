//! The page of a study of sides.

use maud::{Markup, html};
use virtbench_model::samples::{SampleFound, SamplesAnalysis, SamplesSide, analyse_samples};
use virtbench_record::{Provenance, SamplesRecord, SidesPlan};

use super::cells::{estimate, times};
use super::document;
use crate::figures;
use crate::format::scaled;
use crate::outline::{Head, Section};
use crate::takeaway::of_samples;

/// What it says, and its figures.
pub(crate) fn head(provenance: &Provenance, plan: &SidesPlan, analysis: &SamplesAnalysis) -> Head<1> {
    Head {
        title: plan.title.into(),
        place: crate::provenance::place(provenance),
        takeaway: of_samples(provenance, plan, analysis),
        sections: [Section::new(
            "sides",
            "Side by side",
            "Nothing was measured yet.",
            figures::samples(analysis),
        )],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &SidesPlan, records: &[SamplesRecord]) -> String {
    let analysis = analyse_samples(plan, records);
    let head = head(provenance, plan, &analysis);
    let [side_by_side] = &head.sections;
    let notes: Vec<String> = notes(provenance, records);
    let content = html! {
        (head.plain_opening())
        (side_by_side.markup())
        section aria-labelledby="figures" {
            h2 id="figures" { "Every figure" }
            (table(plan, &analysis))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &notes, &|_| None))
        }
    };
    document(plan.title, &provenance.version, &content)
}

/// Those of the run, then those of measurements, each once.
fn notes(provenance: &Provenance, records: &[SamplesRecord]) -> Vec<String> {
    let mut notes = provenance.notes.clone();
    for note in records.iter().filter_map(SamplesRecord::measured).flat_map(|measured| &measured.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

fn table(plan: &SidesPlan, analysis: &SamplesAnalysis) -> Markup {
    let first = plan.sides.first().map_or("", |first| first);
    let mut names: Vec<&SampleFound> = Vec::new();
    for found in analysis.sides.iter().flat_map(|side| &side.samples) {
        if names.iter().all(|other| other.name != found.name) {
            names.push(found);
        }
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "measured" } th scope="col" { "side" }
                    th.number scope="col" { "value" } th.number scope="col" { "times " (first) }
                } }
                tbody {
                    @for name in names {
                        @for side in &analysis.sides {
                            @if let Some(found) = side.sample(&name.name) { (row(side, found)) }
                        }
                    }
                }
            }
        }
    }
}

fn row(side: &SamplesSide, found: &SampleFound) -> Markup {
    let (factor, unit) = scaled(&found.unit);
    html! {
        tr {
            th scope="row" { (found.name) @if !unit.is_empty() { ", " (unit) } }
            td { (side.name) }
            (estimate(found.estimate, factor))
            (times(found.against_first))
        }
    }
}
