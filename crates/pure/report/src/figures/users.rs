//! Users against throughput and response time, a line for each side.

use plotly::common::{Line, Marker, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};
use virtbench_model::oltp::{OltpAnalysis, OltpCurvePoint};

use super::style::{HOVER, axis, layout, palette};
use super::{Drawing, Figure, Variant};
use crate::format::{MILLISECOND_NS, rounded, significant};

/// Two drawings: transactions a second, and the 90th percentile of New-Order's response time. Nothing without a curve.
pub(crate) fn users(analysis: &OltpAnalysis) -> Option<Figure> {
    analysis.sides.iter().any(|side| !side.curve.is_empty()).then_some(())?;
    let per_second = |point: &OltpCurvePoint| Some(point.point.per_second);
    let p90 = |point: &OltpCurvePoint| Some(point.p90_ns? / MILLISECOND_NS);
    Some(Figure {
        title: "Users against throughput and response time".into(),
        caption: "Each number of users was measured once while saturation was searched. The larger mark is the least \
                  number that does as much as any."
            .into(),
        key: Vec::new(),
        drawings: vec![
            drawing(analysis, "users-throughput", "transactions/s", &per_second),
            drawing(analysis, "users-response", "New-Order, 90th percentile, ms", &p90),
        ],
    })
}

fn drawing(
    analysis: &OltpAnalysis,
    id: &str,
    quantity: &str,
    value: &dyn Fn(&OltpCurvePoint) -> Option<f64>,
) -> Drawing {
    let mut traces = Traces::new();
    for (index, side) in analysis.sides.iter().enumerate() {
        let known: Vec<(&OltpCurvePoint, f64)> =
            side.curve.iter().filter_map(|point| Some((point, value(point)?))).collect();
        let sizes = known.iter().map(|(point, _)| {
            if side.found.is_some_and(|found| found.point.users == point.point.users) { 14 } else { 7 }
        });
        let hover = known.iter().map(|(point, value)| {
            let idle = point.point.idle_percent;
            let idle = idle.map_or_else(String::new, |idle| format!("<br>{} % idle", rounded(idle, 1)));
            let users = point.point.users;
            format!("{}<br>{users} users: <b>{}</b>{idle}", side.side.name, significant(*value))
        });
        traces.push(
            Scatter::new(
                known.iter().map(|(point, _)| point.point.users).collect::<Vec<_>>(),
                known.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            )
            .name(&side.side.name)
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(palette(index).0))
            .marker(Marker::new().color(palette(index).0).size_array(sizes.collect()))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
    }
    let layout = layout()
        .x_axis(axis("users").range_mode(RangeMode::ToZero))
        .y_axis(axis(quantity).range_mode(RangeMode::ToZero))
        .height(340);
    let label = format!("{quantity} against users, a line for each side; the table below holds the values.");
    Drawing::only(id, label, Variant::new(quantity, &traces, &layout))
}
