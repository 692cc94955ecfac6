//! The page of a study of desktops.

use maud::{Markup, html};
use virtbench_model::desktops::{DesktopsAnalysis, analyse_desktops};
use virtbench_record::{DesktopPicture, DesktopsNumbers, DesktopsPlan, DesktopsRecord, Provenance};

use super::document;
use crate::figures;
use crate::format::{MILLISECOND_NS, SECOND_NS, rounded, significant};
use crate::outline::{Head, Section};
use crate::takeaway::of_desktops;

/// Pictures that a page shows at most: each may have a third of a megabyte.
const PICTURES: usize = 3;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &DesktopsPlan,
    records: &[DesktopsRecord],
    analysis: &DesktopsAnalysis,
) -> Head<1> {
    let drawn =
        figures::desktops(plan, analysis).into_iter().chain(figures::desktops_timeline(plan, records));
    Head {
        title: "How many desktops fit".into(),
        place: crate::provenance::place(provenance),
        takeaway: of_desktops(provenance, plan, analysis),
        sections: [Section::new("quality", "What users wait", "Nothing was measured yet.", drawn)],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &DesktopsPlan, records: &[DesktopsRecord]) -> String {
    let analysis = analyse_desktops(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [quality] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (quality.markup())
        section aria-labelledby="numbers" {
            h2 id="numbers" { "Every number of desktops" }
            (numbers(plan, &analysis))
        }
        @for at in &analysis.numbers { (operations(at)) }
        (videos(&analysis))
        (pictures(records, &analysis))
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn seconds(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / SECOND_NS))
}

fn numbers(plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of desktops" {
            table {
                thead { tr {
                    th.number scope="col" { "desktops" } th.number scope="col" { "a processor" } th scope="col" { "quality" }
                    th.number scope="col" { "group A, s" } th.number scope="col" { "group B, s" }
                    th.number scope="col" { "A, last change" } th.number scope="col" { "B, last change" }
                    th.number scope="col" { "A, all at once" } th.number scope="col" { "B, all at once" }
                    th.number scope="col" { "failed, %" } th.number scope="col" { "lost" }
                    th.number scope="col" { "between users, %" } th.number scope="col" { "echo of a key, ms" }
                    th.number scope="col" { "host busy, %" }
                } }
                tbody {
                    @for at in &analysis.numbers {
                        tr {
                            th.number scope="row" { (at.desktops) }
                            td.number { @if plan.are_existing() { "–" } @else { (significant(at.per_processor)) } }
                            td { (at.quality) }
                            @for group in &at.groups { td.number { (seconds(group.percentile.map(|found| found.ns))) } }
                            @for group in &at.groups { td.number { (seconds(group.last_change.map(|found| found.ns))) } }
                            @for group in &at.groups { td.number { (seconds(group.storm.map(|found| found.ns))) } }
                            td.number { (rounded(at.errors * 100.0, 1)) }
                            td.number { (at.lost.len()) }
                            td.number { (at.between_users_percent.map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
                            td.number { (at.echo_median_ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / MILLISECOND_NS))) }
                            td.number { (at.host_busy_percent.map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
                        }
                    }
                }
            }
        }
        @for (desktops, why) in &analysis.failures { p { (desktops) " desktops did not stand: " (why) } }
    }
}

fn operations(at: &DesktopsNumbers) -> Markup {
    let id = format!("operations-{}", at.desktops);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Operations with " (crate::format::count(at.desktops as usize, "desktop")) }
            div.scroll tabindex="0" role="region" aria-label="Operations" {
                table {
                    thead { tr {
                        th scope="col" { "application" } th scope="col" { "operation" } th scope="col" { "group" }
                        th.number scope="col" { "done" } th.number scope="col" { "median, s" } th.number scope="col" { "percentile, s" }
                        th.number scope="col" { "interval, s" } th.number scope="col" { "last change, median, s" } th.number scope="col" { "inside, median, s" }
                        th.number scope="col" { "failed" }
                    } }
                    tbody {
                        @for one in &at.operations {
                            tr {
                                th scope="row" { (one.operation.application) }
                                td { (one.operation.operation) }
                                td { (one.operation.group.name()) }
                                td.number { (one.percentile.map_or(0, |found| found.operations)) }
                                td.number { (seconds(one.median_ns)) }
                                td.number { (seconds(one.percentile.map(|found| found.ns))) }
                                td.number { (one.percentile.map_or_else(|| "–".into(), |found| format!("{} to {}", seconds(Some(found.low_ns)), seconds(found.high_ns)))) }
                                td.number { (seconds(one.last_change_median_ns)) }
                                td.number { (seconds(one.inside_median_ns)) }
                                td.number { (one.failed) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Videos with every number of desktops, if any were played.
fn videos(analysis: &DesktopsAnalysis) -> Markup {
    let rows = analysis
        .numbers
        .iter()
        .flat_map(|at| at.operations.iter().filter_map(move |one| Some((at.desktops, one, one.video?))));
    let rows: Vec<_> = rows.collect();
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="videos" {
                h2 id="videos" { "Videos" }
                p {
                    "Every frame carries its number in the picture. Users count which frames reach them; frames that do not are dropped, "
                    "whether by the player, the VNC server or the link."
                }
                div.scroll tabindex="0" role="region" aria-label="Videos" {
                    table {
                        thead { tr {
                            th.number scope="col" { "desktops" } th scope="col" { "application" } th scope="col" { "operation" }
                            th.number scope="col" { "played" } th.number scope="col" { "frames a second" }
                            th.number scope="col" { "seen a second" } th.number scope="col" { "dropped, %" }
                            th.number scope="col" { "longest freeze, ms" }
                        } }
                        tbody {
                            @for (desktops, one, video) in &rows {
                                tr {
                                    th.number scope="row" { (desktops) }
                                    td { (one.operation.application) }
                                    td { (one.operation.operation) }
                                    td.number { (video.played) }
                                    td.number { (video.rate) }
                                    td.number { (rounded(video.seen_rate, 1)) }
                                    td.number { (rounded(video.dropped_percent, 1)) }
                                    td.number { (significant(video.longest_freeze_ns as f64 / MILLISECOND_NS)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// First those of the least number with which users are not content, then those of the greatest with which they are.
fn pictures(records: &[DesktopsRecord], analysis: &DesktopsAnalysis) -> Markup {
    let broken =
        analysis.numbers.iter().map(|at| at.desktops).find(|desktops| Some(*desktops) > analysis.most);
    let rank = |desktops: u32| match Some(desktops) {
        some if some == broken => 0,
        some if some == analysis.most => 1,
        _ => 2,
    };
    let mut shown: Vec<(u32, &DesktopPicture)> = records
        .iter()
        .filter_map(|record| Some((record.key.desktops, record.measured()?)))
        .flat_map(|(desktops, measured)| measured.pictures.iter().map(move |picture| (desktops, picture)))
        .collect();
    shown.sort_by_key(|(desktops, _)| (rank(*desktops), std::cmp::Reverse(*desktops)));
    let base64 = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
    html! {
        @if !shown.is_empty() {
            section aria-labelledby="pictures" {
                h2 id="pictures" { "What users saw at the worst moments" }
                @for (desktops, picture) in shown.iter().filter(|(_, picture)| base64(&picture.png)).take(PICTURES) {
                    figure {
                        img src=(format!("data:image/png;base64,{}", picture.png)) alt=(picture.what) style="max-width:100%";
                        figcaption { (desktops) " desktops, user " (picture.user + 1) ": " (picture.what) }
                    }
                }
            }
        }
    }
}
