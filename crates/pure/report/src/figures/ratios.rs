//! Native against VM at every point: their ratios beside each other, ascending ([ESX Disk 2003], Figure 8), and what an I/O
//! costs the host's processors ([ESX Adapters 2006]).

use virtbench_chart::{Axis, Chart, Form, Look, Point, Rule, Scale, Series};
use virtbench_model::{CurvePoint, Side, Span};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::style::{GREY, dashed_rule, ends, look_of, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{KILOBYTE, ratio, ratio_span, significant};
use crate::run::{Run, RunGuest, RunPoint};

/// More have no room for their names, and would not fit on a sheet of paper.
pub(super) const ROWS_MOST: usize = 40;

/// One of them.
pub(crate) struct Ratio {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) interval: Option<Span>,
    pub(crate) hover: String,
    /// Which of the looks is its own.
    pub(crate) look: usize,
}

/// The chart, in the order of `ratios`; `looks` with their names.
pub(crate) fn ratios(title: &str, ratios: &[Ratio], looks: &[(&str, Look)], rules: Vec<Rule>) -> Chart {
    let has_rows = ratios.len() <= ROWS_MOST;
    let series = looks.iter().enumerate().map(|(index, (name, look))| {
        let own = ratios.iter().enumerate().filter(|(_, one)| one.look == index);
        let point = |(place, one): (usize, &Ratio)| {
            let point = if has_rows {
                Point::new(one.value, place as f64)
            } else {
                Point::new(place as f64 + 1.0, one.value)
            };
            point.between(one.interval.map(ends)).hover(one.hover.clone()).label(ratio(one.value))
        };
        let form = Form::Marks;
        Series { name: (*name).into(), look: *look, form, points: own.map(point).collect() }
    });
    let series = series.collect();
    let names: Vec<String> = ratios.iter().map(|one| one.name.clone()).collect();
    let chart = if has_rows {
        Chart::new(Axis::from_zero(title), rows(&names))
    } else {
        let places = Axis::new("points in ascending order of ratio", Scale::Whole);
        Chart::new(places.within(0.5, ratios.len() as f64 + 0.5), Axis::from_zero(title))
    };
    Chart { series, rules, ..chart }
}

/// A point in few letters: block size, % read / % random.
pub(crate) fn short_name(key: PointKey) -> String {
    let PointKey { block_bytes, read_percent, random_percent } = key;
    format!("{}, {read_percent} / {random_percent}", format_bytes(block_bytes))
}

/// The curve of each kind of guest, or nothing where there is no ratio.
pub(crate) fn ratio_curve(run: &Run<'_>) -> Option<Figure> {
    let drawings: Vec<Drawing> = run.guests.iter().filter_map(|guest| drawing(run, guest)).collect();
    if drawings.is_empty() {
        return None;
    }
    let (title, where_) = match run.only_guest() {
        Some(_) => ("VM / native ratio of every point, sorted", "the VM"),
        None => ("VM / native ratios of every point, sorted", "a VM"),
    };
    Some(Figure {
        title: title.into(),
        caption: format!(
            "Each mark is a point's throughput in {where_} divided by its native throughput; a point is named by block size, \
             % read / % random. The line at 1 is native, the dashed line the geometric mean; whiskers are 95 % intervals over \
             repetitions. A whisker that crosses the line at 1 leaves open whether there is a difference."
        ),
        drawings,
        values: Values::Under("Every point"),
    })
}

fn drawing(run: &Run<'_>, guest: &RunGuest) -> Option<Drawing> {
    let RunGuest { side, comparison } = guest;
    let summary = comparison.summary.as_ref()?;
    let curve: Vec<Ratio> = comparison.curve.iter().map(point).collect();
    let native = Rule { at: 1.0, label: "native".into(), look: Look::of_colour(0) };
    let mean = dashed_rule(summary.mean.value, format!("mean {}", ratio(summary.mean.value)));
    let over = side.over_native();
    let looks = [(over.as_str(), look_of(side))];
    let chart = ratios(&format!("throughput, {over}"), &curve, &looks, vec![native, mean]);
    let label = format!(
        "{} ratios of {} to native throughput in ascending order, from {} to {}, mean {}. The table under Every point holds the \
         values.",
        curve.len(),
        side.name,
        ratio(summary.min.ratio.value),
        ratio(summary.max.ratio.value),
        ratio(summary.mean.value)
    );
    let (id, name) = match run.only_guest() {
        Some(_) => ("ratio-curve".into(), String::new()),
        None => (format!("ratio-curve-{}", side.name.to_lowercase()), over.clone()),
    };
    Some(Drawing::only(&id, label, Variant::chart(name, chart)))
}

fn point(point: &CurvePoint) -> Ratio {
    let interval = point
        .ratio
        .interval
        .map_or_else(|| "one repetition, no interval".into(), |span| format!("95 %: {}", ratio_span(span)));
    Ratio {
        name: short_name(point.key),
        value: point.ratio.value,
        interval: point.ratio.interval,
        hover: format!("{}\n{} of native\n{interval}", point.key, ratio(point.ratio.value)),
        look: 0,
    }
}

/// One of the three ways in which [ESX Adapters 2006] looks at CPU cost.
struct Metric {
    id: &'static str,
    name: &'static str,
    better: &'static str,
    unit: &'static str,
    is_logarithmic: bool,
    of: fn(&Side) -> Option<f64>,
}

const METRICS: [Metric; 3] = [
    Metric {
        id: "cpu-io",
        name: "IOPS per % of host CPU",
        better: "more is better",
        unit: "IOPS per % CPU",
        is_logarithmic: true,
        of: Side::iops_per_cpu_percent,
    },
    Metric {
        id: "cpu-bytes",
        name: "KB/s per % of host CPU",
        better: "more is better",
        unit: "KB/s per % CPU",
        is_logarithmic: true,
        of: |side| side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / KILOBYTE),
    },
    Metric {
        id: "cpu-use",
        name: "Host CPU in %",
        better: "less is better",
        unit: "host CPU, %",
        is_logarithmic: false,
        of: |side| side.cpu_percent.map(|estimate| estimate.mean),
    },
];

/// The figure, or nothing where nothing was measured.
pub(crate) fn cpu(run: &Run<'_>) -> Option<Figure> {
    let points: Vec<&RunPoint> =
        run.points.iter().filter(|point| point.has(|side| side.cpu_percent)).collect();
    if points.is_empty() {
        return None;
    }
    let mut drawings = Vec::new();
    for (number, part) in parts(&points).into_iter().enumerate() {
        for metric in &METRICS {
            let id = format!("{}-{number}", metric.id);
            let label = format!(
                "{} ({}) at {} points, native and {}; the table below holds the values.",
                metric.name,
                metric.better,
                part.len(),
                run.guests_in_words()
            );
            let name = match part.first() {
                Some(first) if part.len() < points.len() => {
                    format!("{}: {}", format_bytes(first.key.block_bytes), metric.name)
                }
                _ => format!("{} ({})", metric.name, metric.better),
            };
            drawings.push(Drawing::only(&id, label, Variant::chart(name, chart(run, metric, part))));
        }
    }
    Some(Figure {
        title: "CPU cost".into(),
        caption: format!(
            "What the host's processors did for each point: native against {}, a line for each point, \
             named by block size, % read / % random. Host \
             CPU is the sum over all processors, so 100 % is one of them wholly busy; it counts \
             everything that ran on the host, the load generator included. Of what is done for a % more is better.",
            run.guests_in_words()
        ),
        drawings,
        values: Values::Own,
    })
}

/// All points if these are few, else those of each block size, so that none fills more than a page.
fn parts<'p, 'a>(points: &'p [&'a RunPoint]) -> Vec<&'p [&'a RunPoint]> {
    if points.len() <= ROWS_MOST {
        return vec![points];
    }
    let of_blocks = points.chunk_by(|one, next| one.key.block_bytes == next.key.block_bytes);
    of_blocks.flat_map(|block| block.chunks(ROWS_MOST)).collect()
}

fn chart(run: &Run<'_>, metric: &Metric, points: &[&RunPoint]) -> Chart {
    let names: Vec<String> = points.iter().map(|point| short_name(point.key)).collect();
    let sides = run.sides.iter().map(|side| {
        let mark = |(row, point): (usize, &&RunPoint)| {
            let value = (metric.of)(point.side(side)?)?;
            let hover = format!("{}\n{}: {} {}", point.key, side.name, significant(value), metric.unit);
            Some(Point::new(value, row as f64).hover(hover))
        };
        let points = points.iter().enumerate().filter_map(mark).collect();
        Series { name: side.name.clone(), look: look_of(side), form: Form::Marks, points }
    });
    // What connects a row's marks.
    let span = |(row, point): (usize, &&RunPoint)| {
        let values: Vec<f64> = run.sides.iter().filter_map(|side| (metric.of)(point.side(side)?)).collect();
        let (least, most) =
            (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        let ends = [least, most];
        (values.len() > 1).then(|| Point::new(ends[0], row as f64).between(Some(ends)))
    };
    let spans = Series {
        name: String::new(),
        look: Look::of_colour(GREY),
        form: Form::Spans,
        points: points.iter().enumerate().filter_map(span).collect(),
    };
    let across =
        if metric.is_logarithmic { Axis::logarithmic(metric.unit) } else { Axis::from_zero(metric.unit) };
    Chart { series: std::iter::once(spans).chain(sides).collect(), ..Chart::new(across, rows(&names)) }
}
