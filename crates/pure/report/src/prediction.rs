//! A prediction: the sentences a reader takes away, and its page.

use maud::{Markup, html};
use virtbench_model::Prediction;
use virtbench_model::predict::{Breakdown, latency};
use virtbench_record::{Profile, Sourced};

use crate::figures;
use crate::format::{ratio, ratio_span, rounded, significant};
use crate::page::{document, opening, section, unbroken};
use crate::takeaway::Takeaway;

/// A prediction with what it was made for.
#[derive(Debug, Clone, Copy)]
pub struct PredictionPage<'a> {
    /// The prediction.
    pub prediction: &'a Prediction,
    /// The application.
    pub profile: &'a Profile,
    /// Where it ran.
    pub from: &'a str,
    /// Where it is to run.
    pub to: &'a str,
    /// What it did there, where that was tried.
    pub actual_capacity: Option<f64>,
}

impl PredictionPage<'_> {
    /// How far the prediction was off, in percent of the truth, where that is known.
    #[must_use]
    pub fn error_percent(&self) -> Option<f64> {
        self.actual_capacity.map(|actual| 100.0 * latency::error(self.prediction.capacity(), actual))
    }

    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        let Prediction { reference, why, method, beyond, cautions, .. } = self.prediction;
        let interval = match self.prediction.capacity_interval() {
            Some(span) => format!("; 95 % interval {} to {}", significant(span.low), significant(span.high)),
            None => "; no interval, for want of repetitions".into(),
        };
        let headline = format!(
            "On {} expect {} {}, {} of the {} on {}{interval}.",
            self.to,
            significant(self.prediction.capacity()),
            reference.name,
            ratio(self.prediction.ratio),
            significant(reference.value),
            self.from
        );
        let mut details = vec![format!("Predicted by the {} method: {why}.", method.name())];
        if let (Some(actual), Some(error)) = (self.actual_capacity, self.error_percent()) {
            details.push(format!(
                "It was {} in fact: the prediction is {} % off.",
                significant(actual),
                rounded(error, 1)
            ));
        }
        let extrapolated = beyond.iter().map(|beyond| format!("Extrapolated: {beyond}."));
        Takeaway { headline, details, cautions: extrapolated.chain(cautions.iter().cloned()).collect() }
    }
}

/// The page, as written by a version of virtbench.
#[must_use]
pub fn prediction_html(page: &PredictionPage<'_>, version: &str) -> String {
    let title = format!("Prediction for {}", page.to);
    let figure = page
        .prediction
        .breakdown
        .as_ref()
        .map(|sides| figures::breakdown([page.from, page.to], sides, measured(page, sides)));
    let drawn: Vec<_> = figure.into_iter().collect();
    let content = html! {
        (opening(&title, &page.profile.name, &page.takeaway(), &key_figures(page)))
        (section("time", "Where the time goes", "This method does not tell.", &drawn))
        @if let Some(sides) = &page.prediction.breakdown { (times(page, sides)) }
        section aria-labelledby="limits" {
            h2 id="limits" { "What limits it, and what would change that" }
            p { (unbroken(&page.prediction.bottleneck)) }
            @if !page.prediction.what_if.is_empty() { (changes(page)) }
        }
        section aria-labelledby="profile" {
            h2 id="profile" { "The application" }
            (profile(page.profile))
        }
    };
    document(&title, version, &content)
}

/// What the same work took in fact, in ms: by the capacity there, in the units of the breakdown.
fn measured(page: &PredictionPage<'_>, sides: &[Breakdown; 2]) -> Option<f64> {
    let actual = page.actual_capacity.filter(|actual| *actual > 0.0)?;
    Some(sides[0].total_ms() * page.prediction.reference.value / actual)
}

fn key_figures(page: &PredictionPage<'_>) -> Markup {
    let prediction = page.prediction;
    html! {
        dl.key {
            div { dt { "predicted " (prediction.reference.name) } dd { span { (significant(prediction.capacity())) }
                @if let Some(span) = prediction.capacity_interval() { small { (significant(span.low)) " to " (significant(span.high)) } } } }
            div { dt { "of " (page.from) } dd { span { (ratio(prediction.ratio)) }
                @if let Some(span) = prediction.interval { small { (ratio_span(span)) } } } }
            @if let (Some(actual), Some(error)) = (page.actual_capacity, page.error_percent()) {
                div { dt { "in fact" } dd { span { (significant(actual)) } small { (rounded(error, 1)) " % off" } } }
            }
            div { dt { "method" } dd { span { (prediction.method.name()) } } }
        }
    }
}

fn times(page: &PredictionPage<'_>, sides: &[Breakdown; 2]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Where the time goes" {
            table {
                thead { tr { th { "side" } th { "part" } th.number { "ms" } } }
                tbody {
                    @for (name, side) in [page.from, page.to].iter().zip(sides) {
                        @for (part, ms) in &side.0 { tr { td { (name) } td { (part.name()) } td.number { (significant(*ms)) } } }
                        tr { td { (name) } td { "all" } td.number { (significant(side.total_ms())) } }
                    }
                }
            }
        }
    }
}

fn changes(page: &PredictionPage<'_>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="What would change it" {
            table {
                thead { tr { th { "with" } th.number { (page.prediction.reference.name) } } }
                tbody {
                    @for what in &page.prediction.what_if {
                        tr { td { (what.change) } td.number { (significant(what.capacity)) } }
                    }
                }
            }
        }
    }
}

fn profile(profile: &Profile) -> Markup {
    fn number(figure: &Sourced<f64>, scale: f64) -> String {
        figure.value().map_or_else(|| "–".into(), |value| significant(value / scale))
    }
    let rows = [
        ("I/O per second", number(&profile.io_per_second, 1.0), profile.io_per_second.origin()),
        ("reads per second", number(&profile.reads_per_second, 1.0), profile.reads_per_second.origin()),
        ("writes per second", number(&profile.writes_per_second, 1.0), profile.writes_per_second.origin()),
        ("MB/s", number(&profile.bytes_per_second, 1e6), profile.bytes_per_second.origin()),
        ("response time, ms", number(&profile.latency_ns, 1e6), profile.latency_ns.origin()),
        ("think time, ms", number(&profile.think_ns, 1e6), profile.think_ns.origin()),
        ("I/Os in flight", number(&profile.outstanding_mean, 1.0), profile.outstanding_mean.origin()),
        ("CPU, user, %", number(&profile.cpu_user_percent, 1.0), profile.cpu_user_percent.origin()),
        ("CPU, system, %", number(&profile.cpu_system_percent, 1.0), profile.cpu_system_percent.origin()),
    ];
    html! {
        div.scroll tabindex="0" role="region" aria-label="The application" {
            table {
                thead { tr { th { "figure" } th.number { "value" } th { "source" } } }
                tbody { @for (name, value, origin) in &rows { tr { td { (name) } td.number { (value) } td { (origin) } } } }
            }
        }
        @for note in &profile.notes { p { (note) } }
    }
}
