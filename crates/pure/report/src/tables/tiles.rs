//! Every number of tiles on each configuration.

use maud::{Markup, html};
use virtbench_model::{Estimate, TilesAnalysis};

use crate::format::{ratio, rounded, significant};

/// Whether management operations ran beside any tiles.
fn has_infrastructure(analysis: &TilesAnalysis) -> bool {
    analysis.configurations.iter().flat_map(|one| &one.steps).any(|step| step.infrastructure.is_some())
}

fn mean(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "–".into(), |estimate| significant(estimate.mean))
}

/// A row for each number of tiles, and under each what its members did.
pub(crate) fn tiles(analysis: &TilesAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of tiles" {
            table {
                thead { tr {
                    th scope="col" { "configuration" }
                    th.number scope="col" { "tiles" }
                    th.number scope="col" { "runs that held" }
                    th.number scope="col" { "score" }
                    @if has_infrastructure(analysis) {
                        th.number scope="col" { "applications" }
                        th.number scope="col" { "infrastructure" }
                    }
                    th.number scope="col" { "fairness" }
                    th scope="col" { "members: of the reference, of one tile, times broken" }
                } }
                tbody {
                    @for one in &analysis.configurations { @for step in &one.steps { tr {
                        th scope="row" { (one.name) }
                        td.number { (step.tiles) }
                        td.number { (step.held) " of " (step.runs) }
                        td.number { @match step.total {
                            Some(sum) => {
                                (significant(sum.mean))
                                @if let Some(span) = sum.span() { " " small { (significant(span.low)) " to " (significant(span.high)) } }
                                @if !step.fits() { " " small { "void" } }
                            }
                            None => "–",
                        } }
                        @if has_infrastructure(analysis) {
                            td.number { (mean(step.sum)) }
                            td.number { (mean(step.infrastructure)) }
                        }
                        td.number { @match step.jain { Some(jain) => (rounded(jain, 3)), None => "–" } }
                        td { @for member in &step.members {
                            div { (member.name) ": "
                                @match member.normalised { Some(done) => (ratio(done.mean)), None => "not scored" }
                                @if let Some(left) = member.of_one_tile { ", " (ratio(left.value)) }
                                @if member.broken > 0 { ", " strong { (member.broken) " broken" } }
                            }
                        } }
                    } } }
                }
            }
        }
    }
}
