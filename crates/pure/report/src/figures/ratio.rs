//! The sorted curve of VM/native ratios ([ESX Disk 2003], Figure 8).

use plotly::common::{Anchor, DashType, Marker, Mode};
use plotly::layout::{Annotation, RangeMode, Shape, ShapeLine, ShapeType};
use plotly::{Scatter, Traces};
use virtbench_model::{CurvePoint, RatioSummary, Span};

use super::profile::whiskers;
use super::style::{HOVER, MUTED, NATIVE_COLOUR, VM_COLOUR, axis, layout, note};
use super::{Drawing, Figure, Variant};
use crate::format::{ratio, ratio_span};
use crate::run::Run;

/// The curve, or nothing where there is no ratio.
pub(crate) fn ratio_curve(run: &Run<'_>) -> Option<Figure> {
    let summary = run.comparison.summary.as_ref()?;
    let curve = &run.comparison.curve;
    let values: Vec<f64> = curve.iter().map(|point| point.ratio.value).collect();
    let spans: Vec<Option<Span>> = curve.iter().map(|point| point.ratio.interval).collect();
    let ranks: Vec<usize> = (1..=curve.len()).collect();
    let points = Scatter::new(ranks, values.clone())
        .name("VM / native")
        .mode(Mode::LinesMarkers)
        .marker(Marker::new().color(VM_COLOUR).size(8))
        .line(plotly::common::Line::new().color(VM_COLOUR).width(1.0))
        .hover_text_array(curve.iter().map(hover).collect())
        .hover_info(HOVER)
        .show_legend(false)
        .error_y(whiskers(&values, &spans));
    let mut traces = Traces::new();
    traces.push(points);
    let layout = layout()
        .x_axis(
            axis("points in ascending order of ratio")
                .show_grid(false)
                .range(vec![0.4, curve.len() as f64 + 0.6]),
        )
        .y_axis(axis("throughput, VM / native").range_mode(RangeMode::ToZero))
        .shapes(vec![
            level(1.0, NATIVE_COLOUR, DashType::Solid),
            level(summary.mean.value, MUTED, DashType::Dash),
        ])
        .annotations(marks(summary, curve.len()));
    let label = format!(
        "Curve of {} ratios of VM to native throughput in ascending order, from {} to {}, mean {}.",
        curve.len(),
        ratio(summary.min.ratio.value),
        ratio(summary.max.ratio.value),
        ratio(summary.mean.value)
    );
    Some(Figure {
        title: "VM / native ratio of every point, sorted".into(),
        caption: "Each dot is a point's throughput in the VM divided by its native throughput. The blue line at 1 \
                  is native, the dashed line the geometric mean; whiskers are 95 % intervals over repetitions. A whisker \
                  that crosses the blue line leaves open whether there is a difference."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing::only("ratio-curve", label, Variant::new("curve", &traces, &layout))],
    })
}

fn hover(point: &CurvePoint) -> String {
    let interval = point
        .ratio
        .interval
        .map_or_else(|| "one repetition, no interval".into(), |span| format!("95 %: {}", ratio_span(span)));
    format!("{}<br><b>{}</b> of native<br>{interval}", point.key, ratio(point.ratio.value))
}

/// A line across the whole figure.
pub(super) fn level(value: f64, colour: &'static str, dash: DashType) -> Shape {
    Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("paper")
        .x0(0.0)
        .x1(1.0)
        .y0(value)
        .y1(value)
        .line(ShapeLine::new().color(colour).width(1.5).dash(dash))
}

/// Min, mean and max written where they lie.
fn marks(summary: &RatioSummary, points: usize) -> Vec<Annotation> {
    let mean = note(format!("mean {}", ratio(summary.mean.value)), 12, MUTED)
        .x_ref("paper")
        .x(0.01)
        .x_anchor(Anchor::Left)
        .y(summary.mean.value)
        .y_anchor(Anchor::Bottom);
    let native = note("native", 12, NATIVE_COLOUR)
        .x_ref("paper")
        .x(0.01)
        .x_anchor(Anchor::Left)
        .y(1.0)
        .y_anchor(Anchor::Bottom);
    if points < 2 {
        return vec![mean, native];
    }
    // Outside the curve: the lowest is named below its whisker, the highest above.
    let end = |name: &str, rank: usize, point: &CurvePoint, y: f64| {
        note(format!("<b>{name} {}</b>", ratio(point.ratio.value)), 12, VM_COLOUR).x(rank).y(y)
    };
    let reach = |point: &CurvePoint| {
        point.ratio.interval.unwrap_or(Span { low: point.ratio.value, high: point.ratio.value })
    };
    vec![
        mean,
        native,
        end("min", 1, &summary.min, reach(&summary.min).low)
            .x_anchor(Anchor::Left)
            .x_shift(-8.0)
            .y_anchor(Anchor::Top),
        end("max", points, &summary.max, reach(&summary.max).high)
            .x_anchor(Anchor::Right)
            .x_shift(8.0)
            .y_anchor(Anchor::Bottom),
    ]
}
