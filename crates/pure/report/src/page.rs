//! What every page has in common: the head, the sentences it opens with, sections of figures.

pub(crate) mod application_study;
mod cells;
pub(crate) mod configurations;
pub(crate) mod desktops;
pub(crate) mod native_vs_vm;
pub(crate) mod oltp;
pub(crate) mod operations;
pub(crate) mod platform;
pub(crate) mod samples;
pub(crate) mod sets;
pub(crate) mod tiles;

pub(crate) use configurations::facts;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use virtbench_chart::KeyEntry;

use crate::figures::{Drawing, Figure, Table, Values};
use crate::takeaway::Takeaway;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// SHA-256 of [`SCRIPT`], by which a browser knows it.
const SCRIPT_SHA256: &str = "ce0hWG2gblaNEzvUhRM/lEiIiFAWM8Z915Zj6bxNk+Y=";

/// Nothing but what the page itself carries: no network, and no script but its own, whatever its data holds.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{SCRIPT_SHA256}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

/// A whole page. `content` is what stands between its head and its foot.
pub(crate) fn document(title: &str, version: &str, content: &Markup) -> String {
    noted("1 MB = 1,000,000 bytes, 1 KB = 1,000 bytes, 1 KiB = 1,024 bytes.", title, version, content)
}

/// The same with a note of its own at the foot.
pub(crate) fn noted(note: &str, title: &str, version: &str, content: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="virtbench";
                title { (title) }
                style { (PreEscaped(virtbench_chart::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
                footer { p { (note) " Written by virtbench " (version) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
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
        }
    }
}

/// A number and its percent sign stay on one line.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, nothing: &str, figures: &[Figure]) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            @if figures.is_empty() { p { (nothing) } }
            @for item in figures { (figure(item, figures.len() > 1)) }
        }
    }
}

/// `named` where a title must tell it from its neighbours.
pub(crate) fn figure(figure: &Figure, named: bool) -> Markup {
    let shared = figure.shared_key();
    let columns = match figure.drawings.len() {
        0 | 1 => "plots",
        count if count % 3 == 0 => "plots three",
        _ => "plots two",
    };
    html! {
        figure {
            @if named { h3 { (figure.title) } }
            @if let Some(key) = &shared { (names(key)) }
            div class=(columns) {
                @for one in &figure.drawings {
                    div.drawing id=(one.id) data-choice=[(one.variants.len() > 1).then_some(one.choice)] {
                        @if shared.is_none() { (names(&one.key())) }
                        (drawing(one, &figure.title, figure.drawings.len() > 1))
                    }
                }
            }
            figcaption {
                (unbroken(&figure.caption))
                @if let Values::Under(title) = figure.values { " Values: the table under " (title) "." }
            }
            @if let Some(table) = figure.table() { (values(&figure.title, &table)) }
        }
    }
}

/// A key, which a single series does not need.
fn names(key: &[KeyEntry]) -> Markup {
    html! {
        @if key.len() > 1 {
            ul.names { @for entry in key { li { (PreEscaped(entry.sample())) (entry.name) } } }
        }
    }
}

/// The variant that is shown large, and the others folded away.
fn drawing(drawing: &Drawing, title: &str, named: bool) -> Markup {
    let others = drawing.variants.len() - 1;
    let variant = |index: usize| {
        let heading = drawing.heading(index);
        html! {
            div.variant data-at=(index) {
                @if (named || others > 0) && !heading.is_empty() { h4 { (heading) } }
                (PreEscaped(drawing.svg(index, title)))
            }
        }
    };
    html! {
        div.shown { (variant(drawing.first)) }
        @if others > 0 {
            details.others {
                summary { @if others == 1 { "The other " (drawing.choice) } @else { "The other " (others) ", by " (drawing.choice) } }
                div.multiples {
                    @for index in (0..drawing.variants.len()).filter(|index| *index != drawing.first) { (variant(index)) }
                }
            }
        }
    }
}

fn values(title: &str, table: &Table) -> Markup {
    let class = |column: usize| (column >= table.names).then_some("number");
    let rows = html! {
        table {
            thead { tr {
                @for (column, text) in table.header.iter().enumerate() { th scope="col" class=[class(column)] { (text) } }
            } }
            tbody {
                @for row in &table.rows {
                    tr { @for (column, text) in row.iter().enumerate() {
                        @if column < table.names { th scope="row" { (text) } } @else { td.number { (text) } }
                    } }
                }
            }
        }
    };
    html! {
        details.values {
            summary { "Values" }
            @if !table.note.is_empty() { p.hint { (table.note) } }
            (scroll(&format!("Values of {title}"), &rows))
        }
    }
}

/// A table that scrolls by itself where the window is too narrow for it.
pub(crate) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}
