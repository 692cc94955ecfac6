//! The page of a simulated evaluation: each figure measured beside published.

use maud::{Markup, html};

use crate::fence_figure::{FenceFigure, FenceValue};
use crate::figures::fence_figure;
use crate::format::significant;
use crate::page::{figure, noted};

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
    let title = "The fence in virtual time, beside [VirtualFence 2013]";
    let content = html! {
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
        }
        @for (number, figure) in page.figures.iter().enumerate() { (section(number, figure)) }
        @for table in &page.tables { (extra(table)) }
    };
    let note = "Deviation is the mean over experiments of |alone - together| / alone.";
    noted(note, title, &page.version, &content)
}

fn section(number: usize, fence: &FenceFigure) -> Markup {
    let id = format!("title-{number}");
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Figure " (fence.name) ". " (fence.title) }
            @if let Some(drawn) = fence_figure(number, fence) { (figure(&drawn, false)) }
            @if !fence.findings.is_empty() {
                ul {
                    @for (claim, verdict, measured) in &fence.findings {
                        li { strong { (verdict) } ": " (claim) " (" (measured) ")." }
                    }
                }
            }
            (table(fence))
        }
    }
}

fn table(figure: &FenceFigure) -> Markup {
    let axis = figure.axis.as_deref();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("Values of figure {}", figure.name)) {
            table.sortable {
                thead { tr {
                    @for title in ["workload", "system", "machine", "metric", "measured", "experiments", "published", "verdict"] {
                        th scope="col" data-sorts { (title) }
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
            div.scroll tabindex="0" role="region" aria-label=(table.title) {
                table {
                    thead { tr { @for title in &table.header { th scope="col" { (title) } } } }
                    tbody { @for row in &table.rows { tr { @for cell in row { td { (cell) } } } } }
                }
            }
        }
    }
}
