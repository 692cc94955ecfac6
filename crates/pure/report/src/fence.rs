//! The page of a simulated evaluation: each figure measured beside published, and drawn.

use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};

use super::figures::style::{INK, rows};
use super::figures::{Drawing, Figure, Values, Variant};
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

/// A figure of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct FenceFigure {
    /// Its number.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Of the horizontal axis, where it has one.
    pub axis: Option<String>,
    /// Its values.
    pub values: Vec<FenceValue>,
    /// Sentences of the paper: the claim, whether it held (held, not held, undecided), the numbers.
    pub findings: Vec<(String, String, String)>,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct FenceValue {
    /// The workload.
    pub workload: String,
    /// The way of storing.
    pub system: String,
    /// The place on the horizontal axis.
    pub x: Option<f64>,
    /// Of which machine.
    pub machine: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The mean.
    pub measured: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The least and the greatest experiment.
    pub range: Option<(f64, f64)>,
    /// What was published, in a few characters, and where the paper says so.
    pub published: Option<(String, String)>,
    /// The published value, or the end of the band that it must not pass.
    pub mark: Option<f64>,
    /// By how much the mean lies outside the published band.
    pub outside: Option<f64>,
}

/// What is measured of one machine.
type Kind<'a> = (&'a str, &'a str, &'a str);

/// The figure, if it has any value; `number` tells it from others of the page.
pub(crate) fn fence_figure(number: usize, figure: &FenceFigure) -> Option<Figure> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for value in &figure.values {
        let kind = (value.metric.as_str(), value.machine.as_str(), value.unit.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let first = kinds.iter().position(|(metric, _, _)| metric.starts_with("response dev")).unwrap_or(0);
    let variants: Vec<Variant> = kinds.iter().map(|kind| variant(figure, *kind)).collect();
    let drawing = Drawing {
        id: format!("figure-{number}"),
        label: format!("Figure {}: {}; the table below holds the numbers.", figure.name, figure.title),
        choice: "metric",
        variants,
        first,
    };
    (!drawing.variants.is_empty()).then(|| Figure {
        title: format!("Figure {}", figure.name),
        caption:
            "Measured with its 95 % interval; diamonds are what the paper's text says, or the end of its \
                  band that must not be passed."
                .into(),
        drawings: vec![drawing],
        values: Values::Under("the same title, with what was published"),
    })
}

fn variant(figure: &FenceFigure, (metric, machine, unit): Kind<'_>) -> Variant {
    let values: Vec<&FenceValue> =
        figure.values.iter().filter(|value| value.metric == metric && value.machine == machine).collect();
    let title = format!("{metric}, {unit}");
    let chart = match &figure.axis {
        Some(axis) => lines(&values, axis, &title),
        None => bars(&values, &title),
    };
    Variant::chart(format!("{metric} ({machine})"), chart)
}

fn workloads<'a>(values: &[&'a FenceValue]) -> Vec<&'a str> {
    let mut workloads: Vec<&str> = Vec::new();
    for value in values {
        if !workloads.contains(&value.workload.as_str()) {
            workloads.push(&value.workload);
        }
    }
    workloads
}

/// A value with its interval, and what a pointer shows.
fn point(value: &FenceValue, x: f64, y: f64) -> Point {
    let interval = value.interval.map(|(low, high)| [low, high]);
    let between = value
        .interval
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", significant(low), significant(high)));
    let hover = format!(
        "{}, {}\n{} {}{between}",
        value.system,
        value.workload,
        significant(value.measured),
        value.unit
    );
    Point::new(x, y).between(interval).hover(hover)
}

fn bars(values: &[&FenceValue], title: &str) -> Chart {
    let names: Vec<String> =
        values.iter().map(|value| format!("{}, {}", value.workload, value.system)).collect();
    let placed = || values.iter().enumerate();
    let series = workloads(values).into_iter().enumerate().map(|(index, workload)| {
        let own = placed().filter(|(_, value)| value.workload == workload);
        let bar = |(row, value): (usize, &&FenceValue)| {
            point(value, value.measured, row as f64).label(significant(value.measured))
        };
        Series { name: workload.into(), look: look(index), form: Form::Bars, points: own.map(bar).collect() }
    });
    let mark = |(row, value): (usize, &&FenceValue)| {
        let words = value.published.as_ref().map_or("", |(brief, _)| brief);
        Some(Point::new(value.mark?, row as f64).hover(format!("published: {words}")))
    };
    let published = Series {
        name: "published".into(),
        look: Look::of_colour(INK).shaped(Shape::Diamond),
        form: Form::Marks,
        points: placed().filter_map(mark).collect(),
    };
    Chart { series: series.chain([published]).collect(), ..Chart::new(Axis::from_zero(title), rows(&names)) }
}

fn lines(values: &[&FenceValue], axis: &str, title: &str) -> Chart {
    let series = workloads(values).into_iter().enumerate().map(|(index, workload)| {
        let own = values.iter().filter(|value| value.workload == workload);
        let points = own.filter_map(|value| Some(point(value, value.x?, value.measured))).collect();
        Series { name: workload.into(), look: look(index), form: Form::Marked, points }
    });
    Chart { series: series.collect(), ..Chart::new(Axis::from_zero(axis), Axis::from_zero(title)) }
}
