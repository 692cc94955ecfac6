//! The numbers behind the figures, in tables that a script sorts by a click on a header; the first of them is whose the host's
//! CPU use was.

mod configurations;

use maud::{Markup, html};
use virtbench_model::{Estimate, Ratio, Side};
use virtbench_record::{
    GuestsState, HostUse, IdleBaseline, Measured, PointRecord, PointStatus, ProcessRole, ProcessUse,
    role_percent, unattributed_percent,
};
use virtbench_units::format_bytes;

pub(crate) use configurations::{kinds, matrices, points, settings, verdicts};

use crate::format::{MEGABYTE, MILLISECOND_NS, ratio, ratio_span, significant};
use crate::run::{Run, RunPoint, RunSide};

/// A cell: what it shows and by what it sorts; cells without a number sort last.
pub(crate) struct Cell {
    text: String,
    range: Option<String>,
    sort: Option<f64>,
}

impl Cell {
    pub(crate) fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self { text: value.map_or_else(|| "–".into(), significant), range: None, sort: value }
    }

    pub(crate) fn estimate(estimate: Option<Estimate>, unit: f64) -> Self {
        let range = estimate
            .and_then(|estimate| estimate.span())
            .map(|span| format!("{} to {}", significant(span.low / unit), significant(span.high / unit)));
        Self { range, ..Self::number(estimate.map(|estimate| estimate.mean / unit)) }
    }

    pub(crate) fn ratio(ratio: Option<Ratio>) -> Self {
        let span = ratio.and_then(|ratio| ratio.interval);
        let range = span.map(|span| format!("{} to {}", significant(span.low), significant(span.high)));
        Self { range, ..Self::number(ratio.map(|ratio| ratio.value)) }
    }

    pub(crate) fn markup(&self) -> Markup {
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
pub(crate) fn header(title: &str, unit: &str, group: Option<&RunSide>) -> Markup {
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

/// Roles in the order of the table, those of idle guests together.
const ROLES: [(&str, &[ProcessRole]); 4] = [
    ("QEMU of the measured guest", &[ProcessRole::MeasuredGuest]),
    ("servers of its blocks", &[ProcessRole::Backing]),
    ("idle guests and their servers", &[ProcessRole::IdleGuest, ProcessRole::IdleBacking]),
    ("virtbench", &[ProcessRole::Virtbench]),
];

/// The host, its parts by role, and the rest, in percent of one processor.
fn split(host: &HostUse, processes: &[ProcessUse]) -> Vec<f64> {
    let of = |roles: &[ProcessRole]| roles.iter().map(|role| role_percent(processes, *role)).sum::<f64>();
    let parts = ROLES.iter().map(|(_, roles)| of(roles));
    std::iter::once(host.cpu_percent).chain(parts).chain([unattributed_percent(host, processes)]).collect()
}

/// The mean of each column.
fn means(rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    let columns = rows.first()?.len();
    let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
    Some((0..columns).map(|column| sum(column) / rows.len() as f64).collect())
}

fn heads(first: &str) -> Markup {
    html! {
        thead { tr {
            th scope="col" { (first) }
            th scope="col" { "host in all " span.unit { "%" } }
            @for (title, _) in ROLES { th scope="col" { (title) " " span.unit { "%" } } }
            th scope="col" { "rest " span.unit { "%" } }
        } }
    }
}

/// While points were measured: a row for each configuration. Nothing where no process was told apart.
pub(crate) fn accounting(records: &[PointRecord], configurations: &[String]) -> Option<Markup> {
    let told = |measured: &&Measured| !measured.processes.is_empty();
    records.iter().filter_map(PointRecord::measured).any(|measured| told(&measured)).then_some(())?;
    let row = |name: &String| {
        let rows: Vec<Vec<f64>> = records
            .iter()
            .filter(|record| record.environment == *name)
            .filter_map(PointRecord::measured)
            .filter(told)
            .map(|measured| split(&measured.host, &measured.processes))
            .collect();
        means(&rows)
    };
    Some(html! {
        p.hint {
            "Means over all points, in percent of one processor. The host in all is what I/O per %CPU is reckoned \
             with. The rest is what no process accounts for: interrupts, threads of the kernel, everything else \
             that ran."
        }
        div.scroll tabindex="0" role="region" aria-label="CPU use while points were measured" {
            table {
                (heads("while measuring"))
                tbody {
                    @for name in configurations {
                        @if let Some(means) = row(name) { tr { th scope="row" { (name) } (numbers(&means)) } }
                    }
                }
            }
        }
    })
}

fn numbers(values: &[f64]) -> Markup {
    html! { @for value in values { (Cell::number(Some(*value)).markup()) } }
}

/// Without a load: a row for each baseline.
pub(crate) fn idle(baselines: &[IdleBaseline]) -> Markup {
    html! {
        p.hint {
            "The same without a load anywhere. Stopped is how guests wait while another is measured: what that \
             costs is in every figure above."
        }
        div.scroll tabindex="0" role="region" aria-label="CPU use of idle guests" {
            table {
                (heads("without a load"))
                tbody {
                    @for baseline in baselines {
                        tr {
                            th scope="row" {
                                (baseline.environments.len()) @match baseline.guests {
                                    GuestsState::Running => " guests running",
                                    GuestsState::Stopped => " guests stopped",
                                }
                            }
                            (numbers(&split(&baseline.host, &baseline.processes)))
                        }
                    }
                }
            }
        }
    }
}

/// A mean times `factor`, with its interval.
pub(crate) fn estimate(known: Option<Estimate>, factor: f64) -> Markup {
    html! {
        td.number { @match known {
            Some(known) => { (significant(known.mean * factor)) @if let Some(span) = known.span() {
                " " small { (significant(span.low * factor)) " to " (significant(span.high * factor)) } } }
            None => "–",
        } }
    }
}

/// How many times another one it is.
pub(crate) fn times(known: Option<Ratio>) -> Markup {
    html! {
        td.number { @match known {
            Some(known) => { (ratio(known.value)) @if let Some(span) = known.interval {
                " " small { (ratio_span(span)) } } }
            None => "–",
        } }
    }
}
