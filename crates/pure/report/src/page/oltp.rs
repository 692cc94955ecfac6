//! The page of a study of a database.

use maud::{Markup, html};
use virtbench_model::oltp::{OltpAnalysis, analyse_oltp};
use virtbench_record::{OltpMeasured, OltpRecord, OltpStudyPlan, Provenance};

use super::document;
use crate::figures;
use crate::format::{MILLISECOND_NS, rounded, significant};
use crate::outline::{Head, Section};
use crate::path_cost::path_cost;
use crate::tables::every_figure;
use crate::takeaway::of_oltp;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &OltpStudyPlan,
    records: &[OltpRecord],
    analysis: &OltpAnalysis,
) -> Head<2> {
    let users = figures::users(analysis).into_iter().chain(figures::growth(&analysis.saturated));
    let timeline = figures::timeline(&plan.sides, records);
    Head {
        title: "A database natively and in VMs".into(),
        place: crate::provenance::place(provenance),
        takeaway: of_oltp(provenance, plan, analysis),
        sections: [
            Section::new("users", "Users", "Nothing was measured yet.", users),
            Section::new("timeline", "Where the spread comes from", "There is no timeline.", timeline),
        ],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &OltpStudyPlan, records: &[OltpRecord]) -> String {
    let analysis = analyse_oltp(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [users, timeline] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (users.markup())
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
        (timeline.markup())
        (causes(&analysis))
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
    document(&head.title, &provenance.version, &content)
}

/// Seconds by what else happened in them.
fn causes(analysis: &OltpAnalysis) -> Markup {
    let known = || analysis.sides.iter().filter_map(|side| Some((side, side.causes.as_ref()?)));
    html! {
        @if known().next().is_some() {
            div.scroll tabindex="0" role="region" aria-label="Seconds by what else happened in them" {
                table {
                    thead { tr {
                        th scope="col" { "side" } th scope="col" { "seconds with" } th.number scope="col" { "seconds" }
                        th.number scope="col" { "of the variance, %" } th.number scope="col" { "throughput / mean" }
                    } }
                    tbody {
                        @for (side, causes) in known() {
                            @for (name, marked) in causes.by_cause.iter().map(|(cause, marked)| (cause.name(), marked)).chain([("any of these", &causes.marked)]) {
                                tr {
                                    th scope="row" { (side.side.name) } td { (name) }
                                    td.number { (marked.seconds) " of " (causes.seconds) }
                                    td.number { (rounded(100.0 * marked.variance_share, 0)) }
                                    td.number { (rounded(marked.throughput_ratio, 2)) }
                                }
                            }
                        }
                    }
                }
            }
            @for (side, causes) in known() {
                @for why in &causes.unavailable { p.hint { (side.side.name) ": unavailable: " (why) } }
            }
        }
    }
}

fn curve(analysis: &OltpAnalysis) -> Markup {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of users" {
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
}

/// What the way to each side costs by itself, and which figures it lacks.
fn paths(plan: &OltpStudyPlan, records: &[OltpRecord]) -> Markup {
    let last = |name: &str| -> Option<&OltpMeasured> {
        records.iter().rev().filter(|record| record.key.side == name).find_map(OltpRecord::measured)
    };
    html! {
        dl.facts {
            @for side in &plan.sides {
                @if let Some(measured) = last(&side.name) {
                    (crate::provenance::fact(
                        &format!("{}, over {}", side.name, measured.appliance.network),
                        &measured.appliance.path.as_ref().map_or_else(|| "not measured".to_owned(), path_cost)
                    ))
                    @for (name, number) in &measured.kvm_exits {
                        (crate::provenance::fact(&format!("{}, KVM's {name} a transaction", side.name), &significant(*number)))
                    }
                    @if let Some(why) = &measured.no_kvm_exits {
                        (crate::provenance::fact(&format!("{}, exits to KVM", side.name), &format!("unavailable: {why}")))
                    }
                    @for (quantity, why) in &measured.unavailable {
                        (crate::provenance::fact(&format!("{}, {}", side.name, quantity.name()), &format!("unavailable: {why}")))
                    }
                }
            }
        }
    }
}
