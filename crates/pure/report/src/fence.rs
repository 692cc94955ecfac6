//! The page of a simulated evaluation: each figure measured beside published.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::fence_figure::{FenceFigure, FenceValue, drawing_id};
use crate::figures::{Drawing, NATIVE_COLOUR, VM_COLOUR, fence_drawing};
use crate::format::significant;
use crate::page::{POLICY, STYLE};
use crate::scripts;

/// Everything the page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct FencePage {
    /// The sentence to take away.
    pub headline: String,
    /// What the page is about and by what command it was made.
    pub details: Vec<String>,
    /// What to know before the figures are used.
    pub cautions: Vec<String>,
    /// Figures, in the paper's order.
    pub figures: Vec<FenceFigure>,
    /// Further tables: a title, a header, rows.
    pub tables: Vec<FenceTable>,
    /// Version of the program.
    pub version: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct FenceTable {
    /// Above it.
    pub title: String,
    /// What it is, in a sentence.
    pub caption: String,
    /// Titles of its columns.
    pub header: Vec<String>,
    /// Its cells.
    pub rows: Vec<Vec<String>>,
}

/// The page as one self-contained HTML file.
#[must_use]
pub fn fence_html(page: &FencePage) -> String {
    let drawings: Vec<Drawing> = page.figures.iter().filter_map(fence_drawing).collect();
    let data: Value = drawings.iter().map(Drawing::json).collect();
    let colours = format!(":root{{--native:{NATIVE_COLOUR};--vm:{VM_COLOUR}}}");
    let title = "The fence in virtual time, beside [VirtualFence 2013]";
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="virtbench";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(colours)) }
                (scripts::head())
            }
            body {
                main {
                    header {
                        h1 { (title) }
                        p.headline { (page.headline) }
                        @for detail in &page.details { p.detail { (detail) } }
                        @if !page.cautions.is_empty() {
                            aside.cautions aria-label="Before you use these figures" {
                                h2 { "Before you use these figures" }
                                ul { @for caution in &page.cautions { li { (caution) } } }
                            }
                        }
                        noscript { p.trouble { "The figures need JavaScript; the tables hold the same numbers." } }
                        p.trouble id="trouble" role="alert" hidden {
                            "Some figures could not be drawn; the tables hold the same numbers."
                        }
                    }
                    @for figure in &page.figures { (section(figure, &drawings)) }
                    @for table in &page.tables { (extra(table)) }
                }
                footer { p { "Deviation is the mean over experiments of |alone - together| / alone. Written by virtbench " (page.version) "." } }
                (scripts::tail(&data))
            }
        }
    };
    markup.into_string()
}

fn section(figure: &FenceFigure, drawings: &[Drawing]) -> Markup {
    let id = format!("title-{}", figure.name);
    let drawing = drawings.iter().find(|drawing| drawing.id == drawing_id(figure));
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Figure " (figure.name) ". " (figure.title) }
            @if let Some(drawing) = drawing {
                figure {
                    (crate::page::selection(drawing, "Metric"))
                    div.plots { div.plot id=(drawing.id) role="img" aria-label=(drawing.label) {} }
                    figcaption {
                        "Measured with its 95 % interval; diamonds are what the paper's text says, or the end of its \
                         band that must not be passed."
                    }
                }
            }
            @if !figure.findings.is_empty() {
                ul {
                    @for (claim, verdict, measured) in &figure.findings {
                        li { strong { (verdict) } ": " (claim) " (" (measured) ")." }
                    }
                }
            }
            (table(figure))
        }
    }
}

fn table(figure: &FenceFigure) -> Markup {
    let axis = figure.axis.as_deref();
    html! {
        div.scroll {
            table.sortable {
                thead { tr {
                    @for title in ["workload", "system", "machine", "metric", "measured", "experiments", "published", "verdict"] {
                        th scope="col" aria-sort="none" { button type="button" { (title) } }
                    }
                } }
                tbody {
                    @for value in &figure.values {
                        tr {
                            td { (value.workload) }
                            td { (place(value, axis)) }
                            td { (value.machine) }
                            td { (value.metric) }
                            td.number data-sort=(value.measured) {
                                (significant(value.measured)) " " (value.unit)
                                @if let Some((low, high)) = value.interval {
                                    small { (significant(low)) " to " (significant(high)) }
                                }
                            }
                            td.number {
                                @if let Some((least, most)) = value.range {
                                    (significant(least)) " to " (significant(most))
                                }
                            }
                            td { @if let Some((brief, quote)) = &value.published { (brief) small { (quote) } } }
                            td { (verdict(value)) }
                        }
                    }
                }
            }
        }
    }
}

/// The system, or the place on the horizontal axis.
pub(crate) fn place(value: &FenceValue, axis: Option<&str>) -> String {
    match (value.x, axis) {
        (Some(x), Some(axis)) => format!("{} at {x} ({axis})", value.system),
        _ => value.system.clone(),
    }
}

fn verdict(value: &FenceValue) -> String {
    match value.outside {
        None => String::new(),
        Some(0.0) => "held".into(),
        Some(outside) => {
            let unit = if value.unit == "%" { "percentage points" } else { &value.unit };
            format!("not held, by {} {unit}", significant(outside.abs()))
        }
    }
}

fn extra(table: &FenceTable) -> Markup {
    html! {
        section {
            h2 { (table.title) }
            p.hint { (table.caption) }
            div.scroll {
                table {
                    thead { tr { @for title in &table.header { th scope="col" { (title) } } } }
                    tbody { @for row in &table.rows { tr { @for cell in row { td { (cell) } } } } }
                }
            }
        }
    }
}
