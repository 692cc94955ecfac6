//! What an I/O costs the host's processors ([ESX Adapters 2006]): native against VM at every point.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series};
use virtbench_model::{ComparedPoint, Side};
use virtbench_units::format_bytes;

use super::ratios::{ROWS_MOST, short_name};
use super::style::{GREY, look_of, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{KILOBYTE, significant};
use crate::run::{Run, Which};

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
    let points: Vec<&ComparedPoint> = run
        .comparison
        .points
        .iter()
        .filter(|point| Which::BOTH.into_iter().any(|which| which.side(point).cpu_percent.is_some()))
        .collect();
    if points.is_empty() {
        return None;
    }
    let mut drawings = Vec::new();
    for (number, part) in parts(&points).into_iter().enumerate() {
        for metric in &METRICS {
            let id = format!("{}-{number}", metric.id);
            let label = format!(
                "{} ({}) at {} points, native and VM; the table below holds the values.",
                metric.name,
                metric.better,
                part.len()
            );
            let name = match part.first() {
                Some(first) if part.len() < points.len() => {
                    format!("{}: {}", format_bytes(first.key.block_bytes), metric.name)
                }
                _ => format!("{} ({})", metric.name, metric.better),
            };
            drawings.push(Drawing::only(&id, label, Variant::chart(name, chart(metric, part))));
        }
    }
    Some(Figure {
        title: "CPU cost".into(),
        caption: "What the host's processors did for each point: native against VM, a line for each point, \
                  named by block size, % read / % random. Host \
                  CPU is the sum over all processors, so 100 % is one of them wholly busy; it counts \
                  everything that ran on the host, the load generator included. Of what is done for a % more is better."
            .into(),
        drawings,
        values: Values::Own,
    })
}

/// All points if these are few, else those of each block size, so that none fills more than a page.
fn parts<'p, 'a>(points: &'p [&'a ComparedPoint]) -> Vec<&'p [&'a ComparedPoint]> {
    if points.len() <= ROWS_MOST {
        return vec![points];
    }
    let of_blocks = points.chunk_by(|one, next| one.key.block_bytes == next.key.block_bytes);
    of_blocks.flat_map(|block| block.chunks(ROWS_MOST)).collect()
}

fn chart(metric: &Metric, points: &[&ComparedPoint]) -> Chart {
    let names: Vec<String> = points.iter().map(|point| short_name(point.key)).collect();
    let sides = Which::BOTH.into_iter().map(|which| {
        let mark = |(row, point): (usize, &&ComparedPoint)| {
            let value = (metric.of)(which.side(point))?;
            let hover = format!("{}\n{}: {} {}", point.key, which.name(), significant(value), metric.unit);
            Some(Point::new(value, row as f64).hover(hover))
        };
        let points = points.iter().enumerate().filter_map(mark).collect();
        Series { name: which.name().into(), look: look_of(which), form: Form::Marks, points }
    });
    // What connects a row's two marks.
    let span = |(row, point): (usize, &&ComparedPoint)| {
        let [native, vm] = Which::BOTH.map(|which| (metric.of)(which.side(point)));
        let ends = [native?, vm?];
        Some(Point::new(ends[0], row as f64).between(Some(ends)))
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
