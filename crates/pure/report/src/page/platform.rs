//! The report card of a platform. On paper it has two sheets: what only the screen shows is in sections of the class `screen`.

use maud::{Markup, html};
use virtbench_model::platform::{DomainScore, Evidence, Insight, MetricScore, Outcome};
use virtbench_record::{PlatformDomain, PlatformPlan, Provenance, SamplesRecord};

use super::cells::estimate;
use super::{document, scroll};
use crate::card::Card;
use crate::figures;
use crate::format::{ratio, ratio_span, significant, trimmed};
use crate::outline::{Head, Outline, Section};
use crate::takeaway::{
    PLATFORM_DEAREST, Takeaway, domain_sentence, of_platform, platform_change, platform_line,
};

const TITLE: &str = "What virtualization costs on this platform";

/// What it says, and its figures.
fn head(card: &Card<'_>, takeaway: Takeaway) -> Head<2> {
    let nothing = "Nothing was measured yet.";
    Head {
        title: TITLE.into(),
        place: crate::provenance::place(card.provenance),
        takeaway,
        sections: [
            Section::new("overview", "Domain by domain", nothing, figures::platform_domains(card)),
            Section::new("figures", "The figures behind it", nothing, figures::platform(card)),
        ],
    }
}

/// The same without the page.
pub(crate) fn outline(card: &Card<'_>) -> Outline {
    head(card, of_platform(card)).outline(card.provenance).in_line(platform_line(card))
}

/// One self-contained page. Each domain links to the pages of its own runs, which lie in the same folder.
pub(crate) fn page(provenance: &Provenance, plan: &PlatformPlan, records: &[SamplesRecord]) -> String {
    let card = Card::new(provenance, plan, records);
    // What details say in text has a place of its own on the page.
    let head = head(&card, Takeaway { details: Vec::new(), ..of_platform(&card) });
    let [overview, behind] = &head.sections;
    let content = html! {
        (head.opening(&score(&card)))
        (dearest(&card))
        (changes(&card))
        section aria-labelledby="measured" {
            h2 id="measured" { "What was measured" }
            p { "1 is " (plan.base()) ", more is better: a figure of " (plan.subject()) " divided by that of " (plan.base())
                ", turned round where less is better." }
            (table(&card))
        }
        div.screen { (overview.markup()) (behind.markup()) }
        (looked_for(&card.insights))
        section.screen aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(TITLE, &provenance.version, &content)
}

fn score(card: &Card<'_>) -> Markup {
    let Some(score) = card.found.score else { return html! {} };
    html! {
        dl.key {
            div {
                dt { "Score of " (card.found.counted().count()) " domains" }
                dd { span { (ratio(score.mean)) } @if let Some(span) = score.span() { small { (ratio_span(span)) } } }
            }
            @for domain in card.found.counted() {
                @if let Some(found) = domain.ratio {
                    div {
                        dt { (domain.name) }
                        dd { span { (ratio(found.mean)) } @if let Some(span) = found.span() { small { (ratio_span(span)) } } }
                    }
                }
            }
        }
    }
}

/// The figures that lose most, each with the row that it stands in.
fn dearest(card: &Card<'_>) -> Markup {
    let losing: Vec<(&DomainScore, &MetricScore)> =
        card.found.dearest(PLATFORM_DEAREST).into_iter().filter(|(_, metric)| metric.ratio < 1.0).collect();
    html! {
        section aria-labelledby="dearest" {
            h2 id="dearest" { "What costs most" }
            @if losing.is_empty() { p { "No figure is below that of " (card.plan.base()) "." } }
            @else {
                ol { @for (domain, metric) in losing {
                    li { a href=(format!("#domain-{}", domain.name)) { (domain.name) ", " (metric.short_name()) } ": "
                        (ratio(metric.ratio)) " of " (card.plan.base()) "." }
                } }
            }
        }
    }
}

fn changes(card: &Card<'_>) -> Markup {
    html! {
        section aria-labelledby="changes" {
            h2 id="changes" { "What to change first" }
            @if card.advice.is_empty() {
                p { "Nothing that was looked at asks for a change. Adapters and cache modes are compared by the profiles quick and full." }
            } @else {
                ol { @for advice in &card.advice { li { (platform_change(advice)) } } }
            }
        }
    }
}

fn table(card: &Card<'_>) -> Markup {
    let rows = html! {
        table {
            thead { tr {
                th scope="col" { "domain" } th.number scope="col" { "of " (card.plan.base()) } th.number scope="col" { "weight" }
                th scope="col" { "what its runs come to" } th scope="col" { "pages" }
            } }
            tbody {
                @for (domain, one) in card.plan.domains.iter().zip(&card.found.domains) { (row(card.plan, domain, one)) }
            }
        }
    };
    scroll("What was measured", &rows)
}

fn row(plan: &PlatformPlan, domain: &PlatformDomain, one: &DomainScore) -> Markup {
    let why = one.unavailable.as_ref().or(one.failures.first());
    let is_measured = one.ratio.is_some() || !one.figures.is_empty();
    html! {
        tr id=(format!("domain-{}", one.name)) {
            th scope="row" { (one.name) }
            (estimate(one.ratio, 1.0))
            td.number { @if plan.compares(domain) { (trimmed(one.weight, 2)) } @else { "–" } }
            td {
                @if is_measured { (domain_sentence(one)) " " }
                @if !is_measured { @if let Some(why) = why { "not measured: " (why) } @else { "not measured yet" } }
                @else if !plan.compares(domain) { "It has no native counterpart, and no part in the score." }
            }
            td { @if is_measured { (pages(plan, domain)) } }
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

/// What each rule has come to, those that fire first.
fn looked_for(insights: &[Insight]) -> Markup {
    let order = |insight: &&Insight| match insight.outcome {
        Outcome::Fires(_) => 0,
        Outcome::Silent => 1,
        Outcome::Unavailable(_) => 2,
    };
    let mut all: Vec<&Insight> = insights.iter().collect();
    all.sort_by_key(order);
    let rows = html! {
        table {
            thead { tr { th scope="col" { "looked for" } th scope="col" { "what came of it" } th scope="col" { "evidence" } } }
            tbody { @for insight in all { (insight_row(insight)) } }
        }
    };
    html! {
        section aria-labelledby="insights" {
            h2 id="insights" { "What was looked for" }
            (scroll("What was looked for", &rows))
        }
    }
}

fn insight_row(insight: &Insight) -> Markup {
    html! {
        tr {
            th scope="row" { (insight.looks_for) }
            @match &insight.outcome {
                Outcome::Fires(finding) => {
                    td.lower { (finding.sentence) }
                    td { @for one in &finding.evidence { (evidence(one)) " " } }
                }
                Outcome::Silent => { td { "not seen here" } td { "–" } }
                Outcome::Unavailable(why) => { td.undecided { "unavailable: " (why) } td { "–" } }
            }
        }
    }
}

fn evidence(one: &Evidence) -> String {
    let space = if one.unit.is_empty() { "" } else { "\u{a0}" };
    format!("{}: {}{space}{}.", one.what, significant(one.value), one.unit)
}
