//! What every page has in common: the head, the sentences it opens with, sections of figures.

mod application_study;
mod configurations;
mod desktops;
mod native_vs_vm;
mod oltp;
mod operations;
mod sets;
mod tiles;

pub(crate) use application_study::page as application_study;
pub(crate) use configurations::facts;
pub(crate) use desktops::page as desktops;
pub(crate) use native_vs_vm::page as native_vs_vm;
pub(crate) use oltp::page as oltp;
pub(crate) use operations::page as operations;
pub(crate) use sets::{deviation, neighbours};
pub(crate) use tiles::page as tiles;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use virtbench_units::rounded;

use crate::figures::{Choice, Drawing, Figure, NATIVE_COLOUR, VM_COLOUR};
use crate::scripts;
use crate::takeaway::Takeaway;

pub(crate) const STYLE: &str = include_str!("../assets/report.css");

/// Nothing but what the page itself carries: no network, whatever its data holds.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// A whole page. `content` is what stands between its head and its scripts, `figures` all that it shows.
pub(crate) fn document<'f>(
    title: &str,
    version: &str,
    content: &Markup,
    figures: impl Iterator<Item = &'f Figure>,
) -> String {
    let drawings: Value =
        figures.flat_map(|figure| &figure.drawings).map(|drawing| short(drawing.json())).collect();
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
                main { (content) }
                footer { p { "1 MB = 1,000,000 bytes, 1 KB = 1,000 bytes, 1 KiB = 1,024 bytes. Written by virtbench " (version) "." } }
                (scripts::tail(&drawings))
            }
        }
    };
    markup.into_string()
}

/// The same with figures of as many digits as can be drawn.
fn short(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().map(rounded).into(),
        Value::Array(values) => values.into_iter().map(short).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, short(value))).collect(),
        other => other,
    }
}

/// What a reader takes away, under the title and where it was measured.
pub(crate) fn opening(title: &str, place: &str, takeaway: &Takeaway, key_figures: &Markup) -> Markup {
    html! {
        header {
            h1 { (title) }
            p.where { (place) }
            p.headline { (unbroken(&takeaway.headline)) }
            (key_figures)
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
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, nothing: &str, figures: &[Figure]) -> Markup {
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
            div.plots.pair[figure.drawings.len() > 1].quad[figure.drawings.len() > 2] {
                @for drawing in &figure.drawings {
                    div.plot id=(drawing.id) role="img" aria-label=(drawing.label) {}
                }
            }
            @if !figure.key.is_empty() {
                ul.names { @for entry in &figure.key { li { span style=(entry.style()) {} (entry.name) } } }
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
