//! The page as a whole, from the sentence a reader takes away down to the provenance.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::figures::{self, Choice, Drawing, Figure, NATIVE_COLOUR, VM_COLOUR};
use crate::format::{ratio, ratio_span};
use crate::run::Run;
use crate::takeaway::{self, Takeaway};
use crate::{provenance, scripts, tables};

pub(crate) const STYLE: &str = include_str!("../assets/report.css");

/// Nothing but what the page itself carries: no network, whatever its data holds.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// The report's HTML.
pub(crate) fn page(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> String {
    let figures = Figures {
        surfaces: figures::surfaces(run),
        ratio: figures::ratio_curve(run),
        latency: figures::latency(run, histograms),
        cpu: figures::cpu(run),
    };
    let takeaway = takeaway::of_run(run);
    let title = title(run);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="virtbench";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(format!(":root{{--native:{NATIVE_COLOUR};--vm:{VM_COLOUR}}}"))) }
                (scripts::head())
            }
            body {
                main {
                    (opening(run, &title, &takeaway))
                    (figures.markup())
                    section aria-labelledby="points" {
                        h2 id="points" { "Every point" }
                        (tables::comparison(run))
                        (tables::repetitions(run))
                    }
                    section aria-labelledby="provenance" {
                        h2 id="provenance" { "Provenance" }
                        (provenance::section(run))
                    }
                }
                footer { p { "1 MB = 1,000,000 bytes, 1 KB = 1,000 bytes, 1 KiB = 1,024 bytes. Written by virtbench " (run.provenance.version) "." } }
                (scripts::tail(&figures.json()))
            }
        }
    };
    markup.into_string()
}

fn title(run: &Run<'_>) -> String {
    let adapter =
        run.provenance.guest.as_ref().map_or_else(String::new, |guest| format!(" on {}", guest.adapter));
    format!("Storage natively and in a VM{adapter}")
}

fn opening(run: &Run<'_>, title: &str, takeaway: &Takeaway) -> Markup {
    html! {
        header {
            h1 { (title) }
            p.where { (run.provenance.host.cpu) " · " (provenance::started(run)) }
            p.headline { (unbroken(&takeaway.headline)) }
            (key_figures(run))
            @for detail in &takeaway.details { p.detail { (unbroken(detail)) } }
            @if !takeaway.cautions.is_empty() {
                aside.cautions aria-label="Before you use these figures" {
                    h2 { "Before you use these figures" }
                    ul { @for caution in &takeaway.cautions { li { (unbroken(caution)) } } }
                }
            }
            noscript { p.trouble { "The figures need JavaScript; the tables below hold the same numbers." } }
            p.trouble id="trouble" role="alert" hidden {
                "Some figures could not be drawn; the tables below hold the same numbers."
            }
        }
    }
}

/// A number and its percent sign stay on one line.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// The handful of numbers to remember.
fn key_figures(run: &Run<'_>) -> Markup {
    let Some(summary) = &run.comparison.summary else { return html! {} };
    let mut figures = vec![
        ("mean ratio", ratio(summary.mean.mean), summary.mean.span().map(ratio_span)),
        ("lowest", ratio(summary.min.ratio.value), Some(summary.min.key.to_string())),
        ("highest", ratio(summary.max.ratio.value), Some(summary.max.key.to_string())),
    ];
    if let Some(cost) = run.comparison.cpu_per_io {
        figures.push(("host CPU per I/O", format!("× {}", ratio(cost.value)), cost.interval.map(ratio_span)));
    }
    html! {
        dl.key {
            @for (name, value, below) in &figures {
                div { dt { (name) } dd { span { (value) } @if let Some(below) = below { small { (unbroken(below)) } } } }
            }
        }
    }
}

/// All figures, in the order of the page.
struct Figures {
    surfaces: Vec<Figure>,
    ratio: Option<Figure>,
    latency: Option<Figure>,
    cpu: Option<Figure>,
}

impl Figures {
    fn all(&self) -> impl Iterator<Item = &Figure> {
        self.surfaces.iter().chain(&self.ratio).chain(&self.latency).chain(&self.cpu)
    }

    fn json(&self) -> Value {
        self.all().flat_map(|figure| &figure.drawings).map(Drawing::json).collect()
    }

    fn markup(&self) -> Markup {
        html! {
            (section("throughput", "Throughput", "Nothing was measured.", &self.surfaces))
            (section("ratio", "Native against VM", "No point was measured on both sides.", self.ratio.as_slice()))
            (section("latencies", "Latency", "No latency histograms were stored.", self.latency.as_slice()))
            (section("cost", "CPU cost", "Nothing was measured.", self.cpu.as_slice()))
        }
    }
}

fn section(id: &str, title: &str, nothing: &str, figures: &[Figure]) -> Markup {
    let depth =
        figures.iter().flat_map(|figure| &figure.drawings).any(|drawing| drawing.choice == Choice::Depth);
    html! {
        section aria-labelledby=(id) {
            div.bar {
                h2 id=(id) { (title) }
                @if depth {
                    div.toggle role="group" aria-label="How surfaces are drawn" {
                        button type="button" data-depth="solid" aria-pressed="false" { "3-D" }
                        button type="button" data-depth="flat" aria-pressed="false" { "flat" }
                    }
                }
            }
            @if figures.is_empty() { p { (nothing) } }
            @for item in figures { (figure(item, figures.len() > 1)) }
        }
    }
}

/// `named` where a title must tell it from its neighbours.
fn figure(figure: &Figure, named: bool) -> Markup {
    html! {
        figure {
            @if named || figure.drawings.len() > 1 { h3 { (figure.title) } }
            @for drawing in &figure.drawings { @if let Choice::Select(what) = drawing.choice { (selection(drawing, what)) } }
            div.plots.pair[figure.drawings.len() > 1] {
                @for drawing in &figure.drawings {
                    div.plot id=(drawing.id) role="img" aria-label=(drawing.label) {}
                }
            }
            figcaption { (figure.caption) }
        }
    }
}

pub(crate) fn selection(drawing: &Drawing, what: &str) -> Markup {
    let id = format!("{}-choice", drawing.id);
    html! {
        p.choice {
            label for=(id) { (what) }
            select id=(id) data-selects=(drawing.id) {
                @for (index, variant) in drawing.variants.iter().enumerate() {
                    option value=(index) selected[index == drawing.first] { (variant.name) }
                }
            }
        }
    }
}
