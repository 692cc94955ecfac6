//! The page of a study of a database.

use maud::{Markup, html};
use virtbench_model::oltp::{OltpAnalysis, analyse_oltp};
use virtbench_record::{OltpMeasured, OltpRecord, OltpStudyPlan, PathCost, Provenance};

use super::{document, opening, section};
use crate::figures;
use crate::format::{MEGABYTE, MILLISECOND_NS, rounded, significant};
use crate::tables::every_figure;
use crate::takeaway::of_oltp;

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &OltpStudyPlan, records: &[OltpRecord]) -> String {
    let analysis = analyse_oltp(plan, records);
    let title = "A database natively and in VMs";
    let host = &provenance.host;
    let place = format!("{} · {}", host.cpu, crate::provenance::started(provenance));
    let figures: Vec<_> =
        figures::users(&analysis).into_iter().chain(figures::growth(&analysis.saturated)).collect();
    let content = html! {
        (opening(title, &place, &of_oltp(provenance, plan, &analysis), &html! {}))
        (section("users", "Users", "Nothing was measured yet.", &figures))
        section aria-labelledby="saturated" {
            h2 id="saturated" { "Each side at its saturation" }
            @if analysis.saturated.sides.is_empty() { p { "Nothing was measured there yet." } } @else { (every_figure(&analysis.saturated)) }
        }
        @if !analysis.equal.sides.is_empty() {
            section aria-labelledby="equal" {
                h2 id="equal" { "With equal users" }
                (every_figure(&analysis.equal))
            }
        }
        section aria-labelledby="curve" {
            h2 id="curve" { "Every number of users" }
            (curve(&analysis))
        }
        section aria-labelledby="unavailable" {
            h2 id="unavailable" { "Paths, and what is not known" }
            (paths(plan, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(title, &provenance.version, &content, figures.iter())
}

fn curve(analysis: &OltpAnalysis) -> Markup {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    html! {
        table {
            thead { tr {
                th scope="col" { "side" } th.number scope="col" { "users" } th.number scope="col" { "transactions/s" }
                th.number scope="col" { "New-Order, 90th percentile, ms" } th.number scope="col" { "idle, %" }
            } }
            tbody {
                @for side in &analysis.sides {
                    @for at in &side.curve {
                        tr {
                            th scope="row" { (side.side.name) }
                            td.number { (at.point.users) }
                            td.number { (significant(at.point.per_second)) }
                            td.number { (shown(at.p90_ns.map(|ns| ns / MILLISECOND_NS))) }
                            td.number { (at.point.idle_percent.map_or_else(|| "–".into(), |idle| rounded(idle, 1))) }
                        }
                    }
                }
            }
        }
    }
}

/// What the way to each side costs by itself, and which figures it lacks.
fn paths(plan: &OltpStudyPlan, records: &[OltpRecord]) -> Markup {
    let last = |name: &str| -> Option<&OltpMeasured> {
        records.iter().rev().filter(|record| record.side == name).find_map(OltpRecord::measured)
    };
    let path = |cost: &PathCost| {
        format!(
            "{} ms median round trip ({} ms for 99 %), {} MB/s to it, {} MB/s from it",
            significant(cost.round_trip_median_ns as f64 / MILLISECOND_NS),
            significant(cost.round_trip_p99_ns as f64 / MILLISECOND_NS),
            significant(cost.to_bytes_per_s / MEGABYTE),
            significant(cost.from_bytes_per_s / MEGABYTE)
        )
    };
    html! {
        dl.facts {
            @for side in &plan.sides {
                @if let Some(measured) = last(&side.name) {
                    (crate::provenance::fact(
                        &format!("{}, over {}", side.name, measured.appliance.network),
                        &measured.appliance.path.as_ref().map_or_else(|| "not measured".to_owned(), path)
                    ))
                    @for (quantity, why) in &measured.unavailable {
                        (crate::provenance::fact(&format!("{}, {}", side.name, quantity.name()), &format!("unavailable: {why}")))
                    }
                }
            }
        }
    }
}
