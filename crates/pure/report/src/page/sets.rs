//! The pages of machines that ran together: neighbours ([Multi-VM 2010]) and deviation ([VirtualFence 2013]).

use maud::{Markup, html};
use virtbench_model::together::{analyse_deviation, analyse_neighbours, machine_numbers};
use virtbench_record::{Provenance, SetRecord};

use super::{document, opening, section};
use crate::figures;
use crate::matrix::Matrix;
use crate::takeaway::{Takeaway, of_deviation, of_neighbours};
use crate::{provenance, tables};

/// What an asterisk beside figures means.
const NO_FINDING: &str = "* no finding: see what stands above before these figures are used.";

/// What a dagger beside figures means.
const LOOSE_START: &str =
    "† its machines did not begin together as exactly as the study needs: see what stands above.";

/// The page of a run of neighbours.
pub(crate) fn neighbours(provenance: &Provenance, records: &[SetRecord]) -> String {
    let title = if in_environments(provenance) { "Machines side by side" } else { "VMs side by side" };
    let analysis = analyse_neighbours(provenance, records);
    let figures = figures::shares(&analysis);
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let content = html! {
        (head(title, provenance, &of_neighbours(&analysis, provenance, records)))
        (section("figures", "Who gets what", "Nothing was measured.", &figures))
        section aria-labelledby="tables" {
            h2 id="tables" { "Every number of VMs" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (tables::neighbours(&analysis))
        }
        (tail(provenance, records))
    };
    document(title, &provenance.version, &content)
}

/// The page of a run of deviation.
pub(crate) fn deviation(provenance: &Provenance, records: &[SetRecord]) -> String {
    let in_environments = in_environments(provenance);
    let title =
        if in_environments { "Machines alone and beside others" } else { "VMs alone and beside others" };
    let analysis = analyse_deviation(provenance, records);
    let overloaded = analysis.sets.iter().any(|set| set.overload.is_some());
    let loose = analysis.sets.iter().any(|set| set.loose_start.is_some());
    let workloads = provenance.plan.colocation().map_or(&[][..], |plan| &plan.workloads);
    let matrix = Matrix::new(workloads, &analysis);
    let figures = match &matrix {
        Some(matrix) => figures::matrix(matrix),
        None => figures::deviations(&analysis),
    };
    let content = html! {
        (head(title, provenance, &of_deviation(&analysis, provenance, records)))
        @if let Some(matrix) = &matrix {
            section aria-labelledby="workloads" { h2 id="workloads" { "Workloads" } (tables::workloads(matrix)) }
        }
        (section("figures", "Deviation", "No VM was measured both alone and beside others.", &figures))
        section aria-labelledby="tables" {
            h2 id="tables" { "Every VM" }
            @if overloaded { p.hint { (NO_FINDING) } }
            @if loose { p.hint { (LOOSE_START) } }
            (tables::deviations(&analysis))
        }
        (tail(provenance, records))
    };
    document(title, &provenance.version, &content)
}

fn in_environments(facts: &Provenance) -> bool {
    facts.plan.colocation().is_some_and(|plan| !plan.homes.is_empty())
}

fn head(title: &str, facts: &Provenance, takeaway: &Takeaway) -> Markup {
    let place = format!("{} · {}", facts.host.cpu, provenance::started(facts));
    opening(title, &place, takeaway, &html! {})
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
