//! Measured beside published: bars over systems, or lines over an axis, a metric at a time.

use plotly::common::{ErrorData, ErrorType, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::RangeMode;
use plotly::{Bar, Scatter, Traces};

use super::style::{INK, VM_COLOUR, axis, layout};
use super::{Choice, Drawing, NATIVE_COLOUR, Variant};
use crate::fence_figure::{FenceFigure, FenceValue, drawing_id};

/// Colours of workloads, of the palette of Okabe and Ito.
const COLOURS: [&str; 3] = [NATIVE_COLOUR, VM_COLOUR, "#009E73"];

/// The drawing of a figure, if it has any value.
pub(crate) fn fence_drawing(figure: &FenceFigure) -> Option<Drawing> {
    let mut kinds: Vec<(&str, &str, &str)> = Vec::new();
    for value in &figure.values {
        let kind = (value.metric.as_str(), value.machine.as_str(), value.unit.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let first = kinds.iter().position(|(metric, _, _)| metric.starts_with("response dev")).unwrap_or(0);
    let variants: Vec<Variant> = kinds.iter().map(|kind| variant(figure, *kind)).collect();
    (!variants.is_empty()).then(|| Drawing {
        id: drawing_id(figure),
        label: format!("Figure {}: {}; the table below holds the numbers.", figure.name, figure.title),
        choice: Choice::Select("Metric"),
        variants,
        first,
    })
}

fn variant(figure: &FenceFigure, (metric, machine, unit): (&str, &str, &str)) -> Variant {
    let values: Vec<&FenceValue> =
        figure.values.iter().filter(|value| value.metric == metric && value.machine == machine).collect();
    let mut workloads: Vec<&str> = values.iter().map(|value| value.workload.as_str()).collect();
    workloads.dedup();
    let mut traces = Traces::new();
    for (workload, colour) in workloads.iter().zip(COLOURS.iter().cycle()) {
        let own: Vec<&FenceValue> =
            values.iter().copied().filter(|value| value.workload == *workload).collect();
        if figure.axis.is_some() {
            traces.push(lines(&own, workload, colour));
        } else {
            traces.push(bars(&own, workload, colour));
        }
    }
    let marks: Vec<&FenceValue> = values.iter().copied().filter(|value| value.mark.is_some()).collect();
    if !marks.is_empty() && figure.axis.is_none() {
        traces.push(published(&marks));
    }
    let title = format!("{metric}, {unit}");
    let layout = layout()
        .x_axis(axis(figure.axis.as_deref().unwrap_or("")))
        .y_axis(axis(&title).range_mode(RangeMode::ToZero));
    Variant::new(format!("{metric} ({machine})"), &traces, &layout)
}

fn errors(values: &[&FenceValue]) -> ErrorData {
    let beyond = |value: &&FenceValue| value.interval.map_or(0.0, |(_, high)| high - value.measured);
    let below = |value: &&FenceValue| value.interval.map_or(0.0, |(low, _)| value.measured - low);
    ErrorData::new(ErrorType::Data)
        .array(values.iter().map(beyond).collect())
        .array_minus(values.iter().map(below).collect())
        .color(INK)
}

fn category(value: &FenceValue) -> String {
    format!("{}<br>{}", value.system, value.workload)
}

fn bars(values: &[&FenceValue], workload: &str, colour: &'static str) -> Box<Bar<String, f64>> {
    let x = values.iter().map(|value| category(value)).collect();
    let y = values.iter().map(|value| value.measured).collect();
    Bar::new(x, y).name(workload).marker(Marker::new().color(colour)).error_y(errors(values))
}

fn lines(values: &[&FenceValue], workload: &str, colour: &'static str) -> Box<Scatter<f64, f64>> {
    let x = values.iter().filter_map(|value| value.x).collect();
    let y = values.iter().map(|value| value.measured).collect();
    Scatter::new(x, y)
        .name(workload)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(colour).width(2.0))
        .error_y(errors(values))
}

fn published(values: &[&FenceValue]) -> Box<Scatter<String, f64>> {
    let x = values.iter().map(|value| category(value)).collect();
    let y = values.iter().filter_map(|value| value.mark).collect();
    Scatter::new(x, y)
        .name("published")
        .mode(Mode::Markers)
        .marker(Marker::new().color(INK).size(10).symbol(MarkerSymbol::DiamondOpen))
}
