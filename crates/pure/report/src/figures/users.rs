//! Users against throughput and response time, a line for each side.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::oltp::{OltpAnalysis, OltpCurvePoint};

use super::style::INK;
use super::{Drawing, Figure, Values, Variant};
use crate::format::{MILLISECOND_NS, rounded, significant};

/// Two drawings: transactions a second, and the 90th percentile of New-Order's response time. Nothing without a curve.
pub(crate) fn users(analysis: &OltpAnalysis) -> Option<Figure> {
    let per_second = |point: &OltpCurvePoint| Some(point.point.per_second);
    let p90 = |point: &OltpCurvePoint| Some(point.p90_ns? / MILLISECOND_NS);
    let drawings = [
        drawing(analysis, "users-throughput", "transactions/s", &per_second),
        drawing(analysis, "users-response", "New-Order, 90th percentile, ms", &p90),
    ];
    let drawings: Vec<Drawing> = drawings.into_iter().flatten().collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Users against throughput and response time".into(),
        caption:
            "Each number of users was measured once while saturation was searched. A cross is the least \
                  number that does as much as any."
                .into(),
        drawings,
        values: Values::Under("Every number of users"),
    })
}

fn drawing(
    analysis: &OltpAnalysis,
    id: &str,
    quantity: &str,
    value: &dyn Fn(&OltpCurvePoint) -> Option<f64>,
) -> Option<Drawing> {
    let mut series: Vec<Series> = Vec::new();
    let mut saturated = Vec::new();
    for (index, side) in analysis.sides.iter().enumerate() {
        let known = side.curve.iter().filter_map(|point| Some((point, value(point)?)));
        let points = known.map(|(point, value)| {
            let idle = point.point.idle_percent;
            let idle = idle.map_or_else(String::new, |idle| format!("\n{} % idle", rounded(idle, 1)));
            let users = point.point.users;
            let hover = format!("{}\n{users} users: {}{idle}", side.side.name, significant(value));
            if side.found.is_some_and(|found| found.point.users == users) {
                saturated.push(Point::new(f64::from(users), value).hover(format!("saturated\n{hover}")));
            }
            Point::new(f64::from(users), value).hover(hover)
        });
        let points = points.collect();
        series.push(Series { name: side.side.name.clone(), look: look(index), form: Form::Marked, points });
    }
    series.iter().any(|side| !side.points.is_empty()).then_some(())?;
    let look = Look::of_colour(INK).shaped(Shape::Cross);
    series.push(Series { name: "saturated".into(), look, form: Form::Marks, points: saturated });
    let chart = Chart { series, ..Chart::new(Axis::from_zero("users"), Axis::from_zero(quantity)) };
    let label = format!(
        "{quantity} against users, a line for each side; the table under Every number of users holds the values."
    );
    Some(Drawing::only(id, label, Variant::chart(quantity, chart)))
}
