//! The pages of machines that ran together: neighbours ([Multi-VM 2010]) and deviation ([VirtualFence 2013]).

use maud::{Markup, html};
use virtbench_model::together::{
    DeviationAnalysis, NeighbourAnalysis, analyse_deviation, analyse_neighbours, machine_numbers,
};
use virtbench_record::{Provenance, SetRecord};

use super::document;
use crate::figures;
use crate::matrix::Matrix;
use crate::outline::{Head, Section};
use crate::takeaway::{of_deviation, of_neighbours};
use crate::{provenance, tables};

/// What an asterisk beside figures means.
const NO_FINDING: &str = "* no finding: see what stands above before these figures are used.";

/// What a dagger beside figures means.
const LOOSE_START: &str =
    "† its machines did not begin together as exactly as the study needs: see what stands above.";

/// What the page of neighbours says, and its figures.
pub(crate) fn neighbours_head(
    facts: &Provenance,
    records: &[SetRecord],
    analysis: &NeighbourAnalysis,
) -> Head<1> {
    let title = if in_environments(facts) { "Machines side by side" } else { "VMs side by side" };
    Head {
        title: title.into(),
        place: provenance::place(facts),
        takeaway: of_neighbours(analysis, facts, records),
        sections: [Section::new(
            "figures",
            "Who gets what",
            "Nothing was measured.",
            figures::shares(analysis),
        )],
    }
}

/// What the page of deviation says, and its figures.
pub(crate) fn deviation_head(
    facts: &Provenance,
    records: &[SetRecord],
    analysis: &DeviationAnalysis,
) -> Head<1> {
    const UNPAIRED: &str = "No VM was measured both alone and beside others.";
    let in_environments = in_environments(facts);
    let title =
        if in_environments { "Machines alone and beside others" } else { "VMs alone and beside others" };
    let figures = match Matrix::new(workloads(facts), analysis) {
        Some(matrix) => figures::matrix(&matrix),
        None => figures::deviations(analysis),
    };
    Head {
        title: title.into(),
        place: provenance::place(facts),
        takeaway: of_deviation(analysis, facts, records),
        sections: [Section::new("figures", "Deviation", UNPAIRED, figures)],
    }
}

/// The page of a run of neighbours.
pub(crate) fn neighbours(provenance: &Provenance, records: &[SetRecord]) -> String {
    let analysis = analyse_neighbours(provenance, records);
    let head = neighbours_head(provenance, records, &analysis);
    let [figures] = &head.sections;
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let content = html! {
        (head.plain_opening())
        (figures.markup())
        section aria-labelledby="tables" {
            h2 id="tables" { "Every number of VMs" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (tables::neighbours(&analysis))
        }
        (tail(provenance, records))
    };
    document(&head.title, &provenance.version, &content)
}

/// The page of a run of deviation.
pub(crate) fn deviation(provenance: &Provenance, records: &[SetRecord]) -> String {
    let analysis = analyse_deviation(provenance, records);
    let head = deviation_head(provenance, records, &analysis);
    let [figures] = &head.sections;
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let matrix = Matrix::new(workloads(provenance), &analysis);
    let content = html! {
        (head.plain_opening())
        @if let Some(matrix) = &matrix {
            section aria-labelledby="workloads" { h2 id="workloads" { "Workloads" } (tables::workloads(matrix)) }
        }
        (figures.markup())
        section aria-labelledby="tables" {
            h2 id="tables" { "Every VM" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (tables::deviations(&analysis))
        }
        (tail(provenance, records))
    };
    document(&head.title, &provenance.version, &content)
}

fn workloads(facts: &Provenance) -> &[String] {
    facts.plan.colocation().map_or(&[][..], |plan| &plan.workloads)
}

fn in_environments(facts: &Provenance) -> bool {
    facts.plan.colocation().is_some_and(|plan| !plan.homes.is_empty())
}

fn tail(facts: &Provenance, records: &[SetRecord]) -> Markup {
    let plan = facts.plan.colocation().filter(|plan| !plan.homes.is_empty());
    html! {
        @if let Some(plan) = plan {
            section aria-labelledby="machines" {
                h2 id="machines" { "Machines" }
                p.hint {
                    "All were told to begin at one moment, each by its own clock, whose offset and drift were measured by \
                     round trips before, meanwhile and after. Processor figures are those of each machine's own host; of \
                     this host's see the tables above."
                }
                (tables::machines(&machine_numbers(plan, records)))
            }
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (provenance::of_sets(facts, records))
        }
    }
}
