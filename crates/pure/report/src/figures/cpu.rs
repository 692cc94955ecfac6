//! What an I/O costs the host's processors ([ESX Adapters 2006]): native against VM at every point.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series};
use virtbench_model::Side;
use virtbench_units::format_bytes;

use super::ratios::{ROWS_MOST, short_name};
use super::style::{GREY, look_of, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{KILOBYTE, significant};
use crate::run::{Run, RunPoint};

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
