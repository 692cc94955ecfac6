//! What an I/O costs the host's processors ([ESX Adapters 2006]): native against VM at every point.

use plotly::common::{Line, Marker, Mode};
use plotly::layout::{AxisType, CategoryOrder, Margin, RangeMode};
use plotly::{Scatter, Traces};
use virtbench_model::{ComparedPoint, Side};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::style::{FAINT, HOVER, axis, colour, layout, logarithmic};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::{KILOBYTE, significant};
use crate::run::{Run, Which};

/// One of the three ways in which [ESX Adapters 2006] looks at CPU cost.
struct Metric {
    name: &'static str,
    unit: &'static str,
    logarithmic: bool,
    of: fn(&Side) -> Option<f64>,
}

const METRICS: [Metric; 3] = [
    Metric {
        name: "IOPS per % of host CPU (more is better)",
        unit: "IOPS per % CPU",
        logarithmic: true,
        of: Side::iops_per_cpu_percent,
    },
    Metric {
        name: "KB/s per % of host CPU (more is better)",
        unit: "KB/s per % CPU",
        logarithmic: true,
        of: |side| side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / KILOBYTE),
    },
    Metric {
        name: "Host CPU in % (less is better)",
        unit: "host CPU, %",
        logarithmic: false,
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
    Some(Figure {
        title: "CPU cost".into(),
        caption: "What the host's processors did for each point: native against VM, a line for each point, \
                  named by block size, % read / % random. Host \
                  CPU is the sum over all processors, so 100 % is one of them wholly busy; it counts \
                  everything that ran on the host, the load generator included."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "cpu".into(),
            label: format!(
                "Host CPU cost of {} points, native and VM; the table below holds the values.",
                points.len()
            ),
            choice: Choice::Select("Quantity"),
            variants: METRICS.iter().map(|metric| variant(metric, &points)).collect(),
            first: 0,
        }],
    })
}

fn variant(metric: &Metric, points: &[&ComparedPoint]) -> Variant {
    let mut traces = Traces::new();
    traces.push(connections(metric, points));
    for which in Which::BOTH {
        let (mut values, mut names, mut hover) = (Vec::new(), Vec::new(), Vec::new());
        for point in points {
            if let Some(value) = (metric.of)(which.side(point)) {
                values.push(value);
                names.push(row_name(point));
                hover.push(format!(
                    "{}<br>{}: <b>{} {}</b>",
                    point.key,
                    which.name(),
                    significant(value),
                    metric.unit
                ));
            }
        }
        traces.push(
            Scatter::new(values, names)
                .name(which.name())
                .mode(Mode::Markers)
                .marker(Marker::new().color(colour(which)).size(10))
                .hover_text_array(hover)
                .hover_info(HOVER),
        );
    }
    let value_axis = if metric.logarithmic {
        logarithmic(axis(metric.unit))
    } else {
        axis(metric.unit).range_mode(RangeMode::ToZero)
    };
    // The first point on top, as in the table.
    let order: Vec<String> = points.iter().rev().map(|point| row_name(point)).collect();
    let rows = axis("")
        .type_(AxisType::Category)
        .category_order(CategoryOrder::Array)
        .category_array(order)
        .show_grid(false)
        .range(vec![-0.6, points.len() as f64 - 0.4])
        .dtick(1.0);
    let row_height = if points.len() > 40 { 14 } else { 22 };
    let layout = layout()
        .x_axis(value_axis)
        .y_axis(rows)
        .height(110 + row_height * points.len())
        .margin(Margin::new().left(8).right(16).top(36).bottom(48));
    Variant::new(metric.name, &traces, &layout)
}

/// Short, so that a narrow screen keeps room for the values.
fn row_name(point: &ComparedPoint) -> String {
    let PointKey { block_bytes, read_percent, random_percent } = point.key;
    format!("{}, {read_percent} / {random_percent}", format_bytes(block_bytes))
}

/// A faint line from native to VM at each point that has both.
fn connections(metric: &Metric, points: &[&ComparedPoint]) -> Box<Scatter<Option<f64>, String>> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for point in points {
        let ends = Which::BOTH.map(|which| (metric.of)(which.side(point)));
        if let [Some(from), Some(to)] = ends {
            for value in [Some(from), Some(to), None] {
                x.push(value);
                y.push(row_name(point));
            }
        }
    }
    Scatter::new(x, y)
        .mode(Mode::Lines)
        .line(Line::new().color(FAINT).width(4.0))
        .hover_info(plotly::common::HoverInfo::Skip)
        .show_legend(false)
}
