//! The report card of a platform, and the sentences a reader takes away. On paper it has two sheets: what only the screen shows is
//!  in sections of the class `screen`.

use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Point, Series, look};
use virtbench_model::platform::{
    Advice, DomainScore, Evidence, Insight, MetricScore, Outcome, PlatformScore, advice, insights,
    score_platform,
};
use virtbench_record::{HostUse, PlatformDomain, PlatformPlan, Provenance, SamplesRecord};

use super::figures::style::rows;
use super::figures::{Drawing, Figure, Table, Values, Variant};
use super::page::{document, scroll};
use super::tables::estimate;
use super::takeaway::cautions::emulation;
use super::takeaway::listed;
use crate::format::{count, ratio, ratio_span, significant, trimmed, with_unit};
use crate::page::{Head, Outline, Section};
use crate::takeaway::Takeaway;

const TITLE: &str = "What virtualization costs on this platform";

/// What it says, and its figures.
fn head(card: &Card<'_>, takeaway: Takeaway) -> Head<2> {
    let nothing = "Nothing was measured yet.";
    Head {
        title: TITLE.into(),
        place: crate::provenance::place(card.provenance),
        takeaway,
        sections: [
            Section::new("overview", "Domain by domain", nothing, platform_domains(card)),
            Section::new("figures", "The figures behind it", nothing, platform(card)),
        ],
    }
}

/// The same without the page.
pub(crate) fn outline(card: &Card<'_>) -> Outline {
    head(card, of_platform(card)).outline(card.provenance).in_line(line(card))
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
        card.found.dearest(DEAREST).into_iter().filter(|(_, metric)| metric.ratio < 1.0).collect();
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
                ol { @for advice in &card.advice { li { (change(advice)) } } }
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

/// So many of the figures that lose most are named.
pub(crate) const DEAREST: usize = 3;

/// Of more figures of a domain the least and the greatest are named.
const NAMED: usize = 4;

/// So many changes are named.
const CHANGES: usize = 3;

/// The score, then the domains, what costs most, what to change first and what rules have found.
pub(crate) fn of_platform(card: &Card<'_>) -> Takeaway {
    let mut details: Vec<String> = domains(card).into_iter().collect();
    details.extend(card.measured().filter(|one| one.ratio.is_none()).map(figures));
    details.extend(dearest_sentence(card));
    details.extend(card.insights.iter().filter_map(|insight| match &insight.outcome {
        Outcome::Fires(finding) => Some(finding.sentence.clone()),
        Outcome::Silent | Outcome::Unavailable(_) => None,
    }));
    details.extend(changes_sentence(card));
    Takeaway { headline: headline(card), details, cautions: cautions(card) }
}

/// All of it in one line, for a terminal.
pub(crate) fn line(card: &Card<'_>) -> String {
    let Some(score) = card.found.score else { return headline(card) };
    let span = score.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let domains: Vec<String> =
        card.measured().filter_map(|one| Some(format!("{} {}", one.name, ratio(one.ratio?.mean)))).collect();
    let under = card.executed_by().map_or_else(String::new, |name| format!(", under {name}"));
    format!(
        "{} of {}{span}: {}; profile {}{under}",
        ratio(score.mean),
        card.plan.base(),
        domains.join(", "),
        card.plan.profile
    )
}

/// `VMs reach 0.62 of this host (0.58 to 0.66): the score over 4 domains, ...`
fn headline(card: &Card<'_>) -> String {
    let Some(score) = card.found.score else {
        return "No domain has been measured yet, so there is no score.".into();
    };
    let names: Vec<&str> = card.found.counted().map(|domain| domain.name.as_str()).collect();
    let span = score.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let comparable = card.plan.domains.iter().filter(|domain| card.plan.compares(domain)).count();
    let of = if comparable == names.len() { String::new() } else { format!(" of {comparable}") };
    let subject = capitalised(card.plan.subject());
    let verb = if subject == "VMs" { "reach" } else { "reaches" };
    format!(
        "{subject} {verb} {} of {}{span}: the score over {}{of}, {}.",
        ratio(score.mean),
        card.plan.base(),
        count(names.len(), "domain"),
        listed(names.into_iter())
    )
}

/// `Storage 0.44 (0.40 to 0.48); network 0.18.`
fn domains(card: &Card<'_>) -> Option<String> {
    let all = card.measured().filter_map(|one| {
        let found = one.ratio?;
        let span = found.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
        Some(format!("{} {}{span}", one.name, ratio(found.mean)))
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| format!("{}.", capitalised(&all.join("; "))))
}

/// What a domain without a counterpart came to.
fn figures(one: &DomainScore) -> String {
    format!("{}: {}", capitalised(&one.name), domain_sentence(one))
}

/// What a domain came to: what its only run says, or the means over the repetitions.
pub(crate) fn domain_sentence(one: &DomainScore) -> String {
    if !one.sentences.is_empty() {
        return one.sentences.join(" ");
    }
    let named = |metric: &MetricScore| format!("{} {}", metric.short_name(), ratio(metric.ratio));
    let all: Vec<String> = match one.metrics.as_slice() {
        [] => one
            .figures
            .iter()
            .map(|one| format!("{} {}", one.name, with_unit(one.value, &one.unit)))
            .collect(),
        metrics if metrics.len() > NAMED => {
            let by_ratio = |one: &&MetricScore, other: &&MetricScore| one.ratio.total_cmp(&other.ratio);
            let ends = [metrics.iter().min_by(by_ratio), metrics.iter().max_by(by_ratio)];
            let [least, most] = ends.map(|end| end.map_or_else(String::new, named));
            vec![format!("{} figures, from {least} to {most}", metrics.len())]
        }
        metrics => metrics.iter().map(named).collect(),
    };
    let of = match one.repetitions().len() {
        0 | 1 => String::new(),
        repetitions => format!("; means of {repetitions} repetitions"),
    };
    format!("{}{of}.", capitalised(&all.join("; ")))
}

fn dearest_sentence(card: &Card<'_>) -> Option<String> {
    let losing: Vec<String> = card
        .found
        .dearest(DEAREST)
        .iter()
        .filter(|(_, metric)| metric.ratio < 1.0)
        .map(|(domain, metric)| format!("{}, {} {}", domain.name, metric.short_name(), ratio(metric.ratio)))
        .collect();
    (!losing.is_empty()).then(|| format!("What costs most: {}.", losing.join("; ")))
}

fn changes_sentence(card: &Card<'_>) -> Option<String> {
    let all: Vec<String> = card.advice.iter().take(CHANGES).map(change).collect();
    (!all.is_empty()).then(|| format!("Change first: {}", all.join(" ")))
}

/// A change, with what was measured with it.
pub(crate) fn change(advice: &virtbench_model::platform::Advice) -> String {
    let sentence = &advice.sentence;
    match advice.gain {
        Some(gain) => format!("{sentence} Measured here: {} times as much.", ratio(gain)),
        None => format!("{sentence} It was not tried here."),
    }
}

fn cautions(card: &Card<'_>) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(card.provenance).into_iter().collect();
    cautions.extend(other_accelerator(card));
    cautions.extend(card.others().map(|(used, processors)| {
        format!(
            "Other programs used {used:.1} of this host's {processors} processors meanwhile: what computes natively and in a VM had unequal \
             shares of the rest, so that ratios may be far off to either side. Measure again on a quiet host."
        )
    }));
    cautions.extend(card.found.domains.iter().filter_map(missing));
    if card.plan.repetitions < 3 {
        let times = if card.plan.repetitions == 1 { "once" } else { "twice" };
        cautions.push(format!("Each domain was measured {times}: intervals need three."));
    }
    cautions.push(
        "A score is of its domains and its profile: scores of other domains, of another profile or of VMs that something else \
         executes are not comparable with it."
            .into(),
    );
    cautions
}

/// Guests of the reference were executed by something else.
fn other_accelerator(card: &Card<'_>) -> Option<String> {
    let reference = card.plan.reference.as_ref()?;
    let (there, here) = (reference.accelerator.as_ref()?.to_uppercase(), card.executed_by()?);
    (there != here).then(|| {
        format!(
            "Guests here were executed by {here}, those of {} by {there}: the ratios compare {here} with {there}, and say nothing of the hosts.",
            reference.run
        )
    })
}

fn missing(one: &DomainScore) -> Option<String> {
    let name = capitalised(&one.name);
    match (&one.unavailable, one.failures.first(), one.ratio.is_some() || !one.figures.is_empty()) {
        (Some(why), _, false) => Some(format!("{name} has no part in the score: {why}")),
        (_, Some(why), false) => Some(format!("{name} has no part in the score, it failed: {why}")),
        (_, Some(why), true) => {
            Some(format!("{} of {} failed: {why}", count(one.failures.len(), "repetition"), one.name))
        }
        _ => None,
    }
}

pub(crate) fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The domains beside each other. Nothing where nothing was measured.
pub(crate) fn platform_domains(card: &Card<'_>) -> Option<Figure> {
    let all: Vec<(&DomainScore, virtbench_model::Estimate)> =
        card.found.domains.iter().filter_map(|domain| Some((domain, domain.ratio?))).collect();
    if all.is_empty() {
        return None;
    }
    let base = card.plan.base();
    let names: Vec<String> = all.iter().map(|(domain, _)| domain.name.clone()).collect();
    let points = all.iter().enumerate().map(|(row, (domain, found))| {
        let hover = format!("{}: {} of {base}", domain.name, ratio(found.mean));
        let interval = found.span().map(|span| [span.low, span.high]);
        Point::new(found.mean, row as f64).hover(hover).label(ratio(found.mean)).between(interval)
    });
    let series =
        Series { name: format!("of {base}"), look: look(0), form: Form::Bars, points: points.collect() };
    let axis = Axis::from_zero(format!("times {base}"));
    let chart = Chart { series: vec![series], ..Chart::new(axis, rows(&names)) };
    let row = |(domain, found): &(&DomainScore, virtbench_model::Estimate)| {
        let span = found.span().map_or_else(String::new, ratio_span);
        vec![domain.name.clone(), ratio(found.mean), span, domain.weight.to_string()]
    };
    let table = Table {
        header: ["domain", "ratio", "95 % interval", "weight"].map(String::from).to_vec(),
        names: 1,
        rows: all.iter().map(row).collect(),
        note: String::new(),
    };
    Some(Figure {
        title: "Domain by domain".into(),
        caption: format!(
            "1 is {base}, more is better. Each bar is the geometric mean of a domain's figures."
        ),
        drawings: vec![Drawing::only(
            "domains",
            format!("The domains as multiples of {base}; the table holds the values."),
            Variant::chart("", chart),
        )],
        values: Values::Given(table),
    })
}

/// A drawing for each domain. Nothing where nothing was measured.
pub(crate) fn platform(card: &Card<'_>) -> Vec<Figure> {
    let measured: Vec<&DomainScore> =
        card.found.domains.iter().filter(|domain| !domain.metrics.is_empty()).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let base = card.plan.base();
    let drawings = measured.iter().enumerate().map(|(index, domain)| bars(index, domain, base)).collect();
    vec![Figure {
        title: format!("How much of {base} is reached"),
        caption: format!(
            "Each bar is one figure as a multiple of that of {base}, turned round where less is better: 1 is no loss."
        ),
        drawings,
        values: Values::Own,
    }]
}

fn bars(index: usize, domain: &DomainScore, base: &str) -> Drawing {
    let names: Vec<String> = domain.metrics.iter().map(|metric| metric.short_name().to_owned()).collect();
    let points = domain.metrics.iter().enumerate().map(|(row, metric)| {
        let hover = format!("{}: {}", metric.name, ratio(metric.ratio));
        Point::new(metric.ratio, row as f64).hover(hover).label(ratio(metric.ratio))
    });
    let series =
        Series { name: format!("of {base}"), look: look(0), form: Form::Bars, points: points.collect() };
    let axis = Axis::from_zero(format!("{}, times {base}", domain.name));
    let chart = Chart { series: vec![series], ..Chart::new(axis, rows(&names)) };
    let label = format!(
        "The figures of {} as multiples of those of {base}; the table holds the values.",
        domain.name
    );
    Drawing::only(&format!("domain-{index}"), label, Variant::chart(&domain.name, chart))
}

/// The score, what rules have found, and what to change first.
pub(crate) struct Card<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) plan: &'a PlatformPlan,
    pub(crate) found: PlatformScore,
    pub(crate) insights: Vec<Insight>,
    pub(crate) advice: Vec<Advice>,
    /// The host in each part.
    hosts: Vec<HostUse>,
}

/// So large a part of the processors may be used by others.
const OTHERS: f64 = 0.1;

impl<'a> Card<'a> {
    pub(crate) fn new(provenance: &'a Provenance, plan: &'a PlatformPlan, records: &[SamplesRecord]) -> Self {
        let found = score_platform(plan, records);
        let insights = insights(provenance, records, &found);
        let advice = advice(records, &insights);
        let measured = records.iter().filter_map(SamplesRecord::measured);
        let hosts = measured.filter_map(|measured| measured.host.clone()).collect();
        Self { provenance, plan, found, insights, advice, hosts }
    }

    /// Processors that other programs used on average while something was measured, and how many there are; nothing where they used next
    /// to none, or it was not sampled.
    pub(crate) fn others(&self) -> Option<(f64, u32)> {
        let used: Vec<f64> = self.hosts.iter().filter_map(|host| host.others_percent).collect();
        let mean = used.iter().sum::<f64>() / 100.0 / used.len().max(1) as f64;
        let processors = self.hosts.first()?.processors;
        (mean > OTHERS * f64::from(processors)).then_some((mean, processors))
    }

    /// What executed the guests, such as `KVM`; nothing where none was measured.
    pub(crate) fn executed_by(&self) -> Option<String> {
        Some(self.provenance.guest.as_ref()?.accelerator.name.to_uppercase())
    }

    /// The domains that were measured, in the plan's order.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &DomainScore> {
        self.found.domains.iter().filter(|domain| domain.ratio.is_some() || !domain.figures.is_empty())
    }
}
