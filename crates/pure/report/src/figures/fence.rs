//! Measured beside published: bars over systems, or lines over an axis, a metric at a time.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};

use super::style::{INK, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::fence_figure::{FenceFigure, FenceValue};
use crate::format::significant;

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
