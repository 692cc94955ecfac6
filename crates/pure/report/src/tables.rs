//! The numbers behind the figures, in tables that a script sorts by a click on a header.

mod accounting;
mod application;
mod infrastructure;
mod kinds;
mod points;
mod sets;
mod settings;
mod tiles;
mod verdicts;

pub(crate) use accounting::{accounting, idle};
pub(crate) use application::every_figure;
pub(crate) use infrastructure::infrastructure;
pub(crate) use kinds::kinds;
pub(crate) use points::points;
pub(crate) use sets::{deviations, machines, neighbours, workloads};
pub(crate) use settings::settings;
pub(crate) use tiles::tiles;
pub(crate) use verdicts::{matrices, verdicts};

use maud::{Markup, html};
use virtbench_model::{Estimate, Ratio, Side};
use virtbench_record::{Measured, PointRecord, PointStatus};
use virtbench_units::format_bytes;

use crate::format::{MEGABYTE, MILLISECOND_NS, ratio, ratio_span, significant};
use crate::run::{Run, RunPoint, RunSide};

/// A cell: what it shows and by what it sorts; cells without a number sort last.
struct Cell {
    text: String,
    range: Option<String>,
    sort: Option<f64>,
}

impl Cell {
    fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self { text: value.map_or_else(|| "–".into(), significant), range: None, sort: value }
    }

    fn estimate(estimate: Option<Estimate>, unit: f64) -> Self {
        let range = estimate
            .and_then(|estimate| estimate.span())
            .map(|span| format!("{} to {}", significant(span.low / unit), significant(span.high / unit)));
        Self { range, ..Self::number(estimate.map(|estimate| estimate.mean / unit)) }
    }

    fn ratio(ratio: Option<Ratio>) -> Self {
        let span = ratio.and_then(|ratio| ratio.interval);
        let range = span.map(|span| format!("{} to {}", significant(span.low), significant(span.high)));
        Self { range, ..Self::number(ratio.map(|ratio| ratio.value)) }
    }

    fn markup(&self) -> Markup {
        html! { td.number data-sort=[self.sort_key()] { (self.content()) } }
    }

    /// In a table whose cells are numbers unless they say that they are text.
    fn plain(&self) -> Markup {
        html! { td data-sort=[self.sort_key()] { (self.content()) } }
    }

    fn content(&self) -> Markup {
        html! { (self.text) @if let Some(range) = &self.range { small { (range) } } }
    }

    /// What it sorts by, where that is not the number it shows.
    fn sort_key(&self) -> Option<String> {
        let shows_it = self.text.replace(',', "").parse::<f64>().is_ok();
        self.sort.filter(|_| !shows_it).map(|value| format!("{value:.5e}"))
    }
}

/// A header by which a script sorts its column. `group` names the columns' side by its colour.
fn header(title: &str, unit: &str, group: Option<&RunSide>) -> Markup {
    let class = group.map_or("", |side| match side.index {
        0 => "native",
        1 => "vm",
        _ => "other",
    });
    html! {
        th scope="col" data-sorts class=(class) {
            @if let Some(side) = group { span.side { (side.name) " " } }
            (title)
            @if !unit.is_empty() { " " span.unit { (unit) } }
        }
    }
}

/// A column of the comparison that all sides have.
struct Column {
    title: &'static str,
    unit: &'static str,
    cell: fn(&Side) -> Cell,
}

const COLUMNS: [Column; 6] = [
    Column { title: "throughput", unit: "MB/s", cell: |side| Cell::estimate(side.throughput, MEGABYTE) },
    Column { title: "I/O rate", unit: "IOPS", cell: |side| Cell::estimate(side.iops, 1.0) },
    Column {
        title: "latency",
        unit: "ms",
        cell: |side| Cell::number(side.latency_ns.map(|ns| ns / MILLISECOND_NS)),
    },
    Column { title: "p99", unit: "ms", cell: |side| Cell::number(side.p99_ns.map(|ns| ns / MILLISECOND_NS)) },
    Column { title: "host CPU", unit: "%", cell: |side| Cell::estimate(side.cpu_percent, 1.0) },
    Column { title: "efficiency", unit: "IOPS/%", cell: |side| Cell::number(side.iops_per_cpu_percent()) },
];

/// Every point with all its sides.
pub(crate) fn comparison(run: &Run<'_>) -> Markup {
    html! {
        p.hint {
            "Native and " (run.guests_in_words()) " at every point: means over repetitions, with their 95 % intervals below where there are \
             three or more; p99 is the median of theirs. "
            span.with-script { "Select a header to sort." }
        }
        div.scroll tabindex="0" role="region" aria-label="Comparison of every point" {
            table.sortable.numbers {
                thead { tr {
                    (header("block", "", None))
                    (header("read", "%", None))
                    (header("random", "%", None))
                    @for guest in &run.guests { (header(&guest.side.over_native(), "", None)) }
                    @for column in &COLUMNS {
                        @for side in &run.sides { (header(column.title, column.unit, Some(side))) }
                    }
                    th scope="col" { "remarks" }
                } }
                tbody { @for point in &run.points { (comparison_row(run, point)) } }
            }
        }
    }
}

fn comparison_row(run: &Run<'_>, point: &RunPoint) -> Markup {
    let key = point.key;
    let shown = |side: &RunSide| {
        let found = point.ratio(side);
        Cell {
            text: found.map_or_else(|| "–".into(), |value| ratio(value.value)),
            range: found.and_then(|value| value.interval).map(ratio_span),
            sort: found.map(|value| value.value),
        }
    };
    let nothing = Side::default();
    html! {
        tr {
            td data-sort=(key.block_bytes) { (format_bytes(key.block_bytes)) }
            td { (key.read_percent) }
            td { (key.random_percent) }
            @for guest in &run.guests { (shown(&guest.side).plain()) }
            @for column in &COLUMNS {
                @for side in &run.sides { ((column.cell)(point.side(side).unwrap_or(&nothing)).plain()) }
            }
            td.remarks { (remarks(run, point).join("; ")) }
        }
    }
}

fn remarks(run: &Run<'_>, point: &RunPoint) -> Vec<String> {
    let mut remarks = Vec::new();
    for guest in &run.guests {
        let Some(ratio) = point.ratio(&guest.side) else { continue };
        let whose = if run.only_guest().is_some() { String::new() } else { format!("{}: ", guest.side.name) };
        remarks.extend((ratio.pairs == 1).then(|| format!("{whose}one repetition: no interval")));
        remarks.extend((ratio.excludes_one() == Some(false)).then(|| format!("{whose}no difference shown")));
    }
    for side in &run.sides {
        let own = point.side(side).map(side_remarks).unwrap_or_default();
        remarks.extend(own.into_iter().map(|remark| format!("{}: {remark}", side.name)));
    }
    remarks
}

/// What there is to say against one environment's figures at a point.
fn side_remarks(side: &Side) -> Vec<String> {
    let mut remarks: Vec<String> = side.unavailable.iter().map(|why| format!("unavailable: {why}")).collect();
    remarks.extend((side.errors > 0).then(|| format!("{} errors", side.errors)));
    remarks.extend((side.suspect_clocks > 0).then(|| "suspect clock".into()));
    remarks.extend((side.interrupted > 0).then(|| "stopped early".into()));
    remarks
}

/// Every repetition as it was measured, folded away.
pub(crate) fn repetitions(records: &[PointRecord]) -> Markup {
    html! {
        details {
            summary { "All " (records.len()) " recorded repetitions" }
            p.hint { "Each repetition as it was measured, by the measuring machine's clock." }
            (all_repetitions(records))
        }
    }
}

fn all_repetitions(records: &[PointRecord]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="All repetitions" {
            table.sortable.numbers {
                thead { tr {
                    (header("environment", "", None))
                    (header("block", "", None))
                    (header("read", "%", None))
                    (header("random", "%", None))
                    (header("repetition", "", None))
                    (header("throughput", "MB/s", None))
                    (header("I/O rate", "IOPS", None))
                    (header("mean", "ms", None))
                    (header("p50", "ms", None))
                    (header("p99", "ms", None))
                    (header("p99.9", "ms", None))
                    (header("max", "ms", None))
                    (header("errors", "", None))
                    (header("host CPU", "%", None))
                    (header("clock drift", "ppm", None))
                } }
                tbody { @for record in records { (repetition_row(record)) } }
            }
        }
    }
}

fn repetition_row(record: &PointRecord) -> Markup {
    let key = record.point;
    html! {
        tr {
            td.text { (record.environment) }
            td data-sort=(key.block_bytes) { (format_bytes(key.block_bytes)) }
            td { (key.read_percent) }
            td { (key.random_percent) }
            td { (record.repetition) }
            @match &record.status {
                PointStatus::Measured(measured) => (measured_cells(measured)),
                PointStatus::Unavailable { why } => { td.remarks colspan="10" { "unavailable: " (why) } }
            }
        }
    }
}

fn measured_cells(measured: &Measured) -> Markup {
    let total = &measured.outcome.total;
    let latency = total.latency_ns;
    let milliseconds = |ns: Option<f64>| Cell::number(ns.map(|ns| ns / MILLISECOND_NS));
    let cells = [
        Cell::number(Some(total.bytes_per_second / MEGABYTE)),
        Cell::number(Some(total.iops)),
        milliseconds(latency.map(|latency| latency.mean)),
        milliseconds(latency.map(|latency| latency.p50 as f64)),
        milliseconds(latency.map(|latency| latency.p99 as f64)),
        milliseconds(latency.map(|latency| latency.p99_9 as f64)),
        milliseconds(latency.map(|latency| latency.max as f64)),
        Cell::number(Some(measured.outcome.errors as f64)),
        Cell::number(Some(measured.host.cpu_percent)),
        Cell::number(measured.clock.as_ref().map(|clock| clock.drift_ppm)),
    ];
    html! { @for cell in &cells { (cell.plain()) } }
}
