//! The page of a study of tiles.

use maud::{Markup, html};
use virtbench_model::tiles_study::{TilesStudyAnalysis, analyse_tiles_study};
use virtbench_record::{
    INFRASTRUCTURE, Provenance, TileDone, TileLevels, TileMemberMeasured, TilesPlan, TilesRecord,
};
use virtbench_units::format_duration_ns;

use super::document;
use crate::figures;
use crate::format::{SECOND_NS, count, rounded, significant};
use crate::outline::{Head, Section};
use crate::tables::{infrastructure, tiles};
use crate::takeaway::of_tiles_study;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &TilesPlan,
    records: &[TilesRecord],
    analysis: &TilesStudyAnalysis,
) -> Head<3> {
    let host = if plan.is_elsewhere() { "The generators' host" } else { "The host" };
    let members = figures::tiles_members(plan, records);
    Head {
        title: format!("How many tiles fit: {}", plan.tile),
        place: crate::provenance::place(provenance),
        takeaway: of_tiles_study(provenance, plan, analysis),
        sections: [
            Section::new(
                "score",
                "Score over tiles",
                "No run has a score.",
                figures::tiles(&analysis.scored),
            ),
            Section::new(
                "members",
                "Members against their service levels",
                "No member has a series.",
                members,
            ),
            Section::new("host", host, "Nobody looked at the host.", figures::tiles_host(records)),
        ],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &TilesPlan, records: &[TilesRecord]) -> String {
    let analysis = analyse_tiles_study(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [score, members, host] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (score.markup())
        section aria-labelledby="counts" {
            h2 id="counts" { "Every number of tiles" }
            (tiles(&analysis.scored))
        }
        (members.markup())
        @for record in firsts(records) { (members_table(plan, record)) }
        (infrastructure(plan, records))
        (breaches(&analysis))
        (host.markup())
        (host_table(&analysis))
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

/// The first measured run of each number of tiles, ascending.
fn firsts(records: &[TilesRecord]) -> Vec<&TilesRecord> {
    let mut found: Vec<&TilesRecord> = Vec::new();
    for record in records.iter().filter(|record| record.measured().is_some() && record.void().is_none()) {
        if found.iter().all(|other| other.key.tiles != record.key.tiles) {
            found.push(record);
        }
    }
    found.sort_by_key(|record| record.key.tiles);
    found
}

fn members_table(plan: &TilesPlan, record: &TilesRecord) -> Markup {
    let id = format!("members-{}", record.key.tiles);
    let members = record.measured().map_or(&[][..], |measured| measured.members.as_slice());
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Tile by tile with " (count(record.key.tiles as usize, "tile")) }
            div.scroll tabindex="0" role="region" aria-label="Tile by tile" {
                table {
                    thead { tr {
                        th.number scope="col" { "tile" } th scope="col" { "member" } th.number scope="col" { "ready, s" }
                        th.number scope="col" { "operations/s" } th.number scope="col" { "median, s" }
                        th.number scope="col" { "percentile, s" } th.number scope="col" { "failed" }
                        th scope="col" { "service levels" } th.number scope="col" { "generator busy, %" }
                    } }
                    tbody { @for one in members { (member_row(plan, one)) } }
                }
            }
        }
    }
}

fn member_row(plan: &TilesPlan, one: &TileMemberMeasured) -> Markup {
    let levels = plan.member(&one.member).map(|member| member.levels).unwrap_or_default();
    let done = one.done.as_ref();
    let seconds = |ns: Option<u64>| ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / SECOND_NS));
    html! {
        tr {
            td.number { (one.tile) }
            th scope="row" { (one.member) }
            td.number { (significant(one.ready_ns as f64 / SECOND_NS)) }
            td.number { (done.map_or_else(|| "–".into(), |done| significant(done.per_second))) }
            td.number { (seconds(done.and_then(|done| Some(done.latency_ns?.p50)))) }
            td.number { (seconds(done.and_then(|done| done.response_ns(levels.percentile)))) }
            td.number { (done.map_or_else(|| "–".into(), failed)) }
            td { (if done.is_some() { in_words(&levels) } else { "to stay up".into() }) }
            td.number { (done.and_then(|done| done.busiest_thread_percent).map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
        }
    }
}

fn failed(done: &TileDone) -> String {
    let kinds: Vec<String> =
        done.error_kinds.iter().map(|(kind, times)| format!("{times} x {kind}")).collect();
    if kinds.is_empty() { done.failed.to_string() } else { kinds.join("; ") }
}

fn in_words(levels: &TileLevels) -> String {
    let response =
        levels.response_ns.map(|ns| format!("{} % within {}", levels.percentile, format_duration_ns(ns)));
    let least = levels.least_per_second.map(|least| format!("{least}/s at least"));
    let errors = Some(format!("{} % failed at most", levels.errors_percent));
    [response, least, errors].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn breaches(analysis: &TilesStudyAnalysis) -> Markup {
    html! {
        section aria-labelledby="breaches" {
            h2 id="breaches" { "Broken service levels" }
            @if analysis.breaches.is_empty() { p { "Every member kept its service levels in every run that counts." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Broken service levels" {
                    table {
                        thead { tr {
                            th.number scope="col" { "tiles" } th.number scope="col" { "run" } th.number scope="col" { "tile" }
                            th scope="col" { "member" } th scope="col" { "level" } th.number scope="col" { "beyond, times" }
                            th.number scope="col" { "since, s" }
                        } }
                        tbody {
                            @for breach in &analysis.breaches {
                                tr {
                                    td.number { (breach.tiles) }
                                    td.number { (breach.repetition + 1) }
                                    td.number { (if breach.tile == INFRASTRUCTURE { "–".into() } else { breach.tile.to_string() }) }
                                    th scope="row" { (breach.member) }
                                    td { (breach.level) }
                                    td.number { (breach.beyond.map_or_else(|| "–".into(), significant)) }
                                    td.number { (breach.since_ns.map_or_else(|| "–".into(), |ns| rounded(ns as f64 / SECOND_NS, 0))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn host_table(analysis: &TilesStudyAnalysis) -> Markup {
    let percent = |value: Option<f64>| value.map_or_else(|| "–".into(), |value| rounded(value, 0));
    html! {
        div.scroll tabindex="0" role="region" aria-label="The host" {
            table {
                thead { tr {
                    th.number scope="col" { "tiles" } th.number scope="col" { "processors busy, %" }
                    th.number scope="col" { "the busiest, %" } th.number scope="col" { "taken away, %" }
                    th.number scope="col" { "memory left, MiB" } th.number scope="col" { "disk busy, %" }
                    th.number scope="col" { "network interface, %" } th.number scope="col" { "network of a VM, %" }
                    th scope="col" { "exhausted" } th.number scope="col" { "power, W" } th.number scope="col" { "score a kilowatt" }
                } }
                tbody {
                    @for at in &analysis.host {
                        tr {
                            th.number scope="row" { (at.tiles) }
                            td.number { (rounded(at.busy_percent, 0)) }
                            td.number { (percent(at.busiest_processor_percent)) }
                            td.number { (rounded(at.steal_percent, 1)) }
                            td.number { (at.least_available_bytes.map_or_else(|| "–".into(), |bytes| (bytes >> 20).to_string())) }
                            td.number { (percent(at.disk_percent)) }
                            td.number { (percent(at.network_percent)) }
                            td.number { (percent(at.network_thread_percent)) }
                            td { (if at.exhausted.is_empty() { "nothing".into() } else { at.exhausted.join("; ") }) }
                            td.number { (at.watts.map_or_else(|| "–".into(), significant)) }
                            td.number { (at.score_per_kilowatt.map_or_else(|| "–".into(), significant)) }
                        }
                    }
                }
            }
        }
        @if let Some(why) = &analysis.energy_unavailable { p { "Power unavailable: " (why) "." } }
    }
}
