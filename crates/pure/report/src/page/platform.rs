//! The report card of a platform.

use maud::{Markup, html};
use virtbench_model::platform::{DomainScore, PlatformScore, score_platform};
use virtbench_record::{PlatformDomain, PlatformPlan, Provenance, SamplesRecord};

use super::cells::estimate;
use super::{document, scroll};
use crate::figures;
use crate::format::{ratio, ratio_span, trimmed};
use crate::outline::{Head, Section};
use crate::takeaway::of_platform;

const TITLE: &str = "What virtualization costs on this platform";

/// What it says, and its figures.
pub(crate) fn head(provenance: &Provenance, plan: &PlatformPlan, found: &PlatformScore) -> Head<1> {
    Head {
        title: TITLE.into(),
        place: crate::provenance::place(provenance),
        takeaway: of_platform(provenance, plan, found),
        sections: [Section::new(
            "figures",
            "The figures behind it",
            "Nothing was measured yet.",
            figures::platform(found),
        )],
    }
}

/// One self-contained page. Each domain links to the pages of its own runs, which lie in the same folder.
pub(crate) fn page(provenance: &Provenance, plan: &PlatformPlan, records: &[SamplesRecord]) -> String {
    let found = score_platform(plan, records);
    let head = head(provenance, plan, &found);
    let [behind] = &head.sections;
    let content = html! {
        (head.opening(&score(&found)))
        section aria-labelledby="domains" {
            h2 id="domains" { "Domain by domain" }
            p { "1 is this host itself, more is better. Each figure is a VM's as a multiple of this host's, turned round where less is better." }
            (table(plan, &found))
        }
        (behind.markup())
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(TITLE, &provenance.version, &content)
}

fn score(found: &PlatformScore) -> Markup {
    let Some(score) = found.score else { return html! {} };
    html! {
        dl.key {
            div {
                dt { "Score of " (found.counted().count()) " domains" }
                dd { span { (ratio(score.mean)) } @if let Some(span) = score.span() { small { (ratio_span(span)) } } }
            }
        }
    }
}

fn table(plan: &PlatformPlan, found: &PlatformScore) -> Markup {
    let rows = html! {
        table {
            thead { tr {
                th scope="col" { "domain" } th.number scope="col" { "of this host" } th.number scope="col" { "weight" }
                th scope="col" { "what its runs come to" } th scope="col" { "pages" }
            } }
            tbody { @for (domain, one) in plan.domains.iter().zip(&found.domains) { (row(plan, domain, one)) } }
        }
    };
    scroll("Domain by domain", &rows)
}

fn row(plan: &PlatformPlan, domain: &PlatformDomain, one: &DomainScore) -> Markup {
    let why = one.unavailable.as_ref().or(one.failures.first());
    html! {
        tr {
            th scope="row" { (one.name) }
            (estimate(one.ratio, 1.0))
            td.number { (trimmed(one.weight, 2)) }
            td {
                @for sentence in &one.sentences { (sentence) " " }
                @if one.sentences.is_empty() {
                    @for metric in &one.metrics { (metric.short_name()) " " (ratio(metric.ratio)) ". " }
                }
                @if one.ratio.is_none() { @if let Some(why) = why { "not measured: " (why) } @else { "not measured yet" } }
            }
            td { @if one.ratio.is_some() { (pages(plan, domain)) } }
        }
    }
}

/// The pages of a domain's runs, by repetition.
fn pages(plan: &PlatformPlan, domain: &PlatformDomain) -> Markup {
    html! {
        @for repetition in 1..=plan.repetitions {
            @for run in &domain.runs {
                a href=(format!("{}/report.html", run.folder(&domain.name, repetition - 1))) { (run.name) " " (repetition) }
                " "
            }
        }
    }
}
