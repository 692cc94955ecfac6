//! Throughput along a single axis, where a grid spans no surface.

use plotly::common::{ErrorData, ErrorType, Marker};
use plotly::layout::{AxisType, BarMode, RangeMode};
use plotly::{Bar, Traces};
use virtbench_model::{ComparedPoint, Span};
use virtbench_units::format_bytes;

use super::style::{HOVER, INK, axis, colour, layout};
use super::{Drawing, Figure, Variant};
use crate::format::{MEGABYTE, significant};
use crate::run::Which;

/// What varies from bar to bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Varying {
    Block,
    Read,
    Random,
}

impl Varying {
    fn title(self) -> &'static str {
        match self {
            Self::Block => "block size",
            Self::Read => "% read",
            Self::Random => "% random",
        }
    }

    fn value(self, point: &ComparedPoint) -> String {
        match self {
            Self::Block => format_bytes(point.key.block_bytes),
            Self::Read => point.key.read_percent.to_string(),
            Self::Random => point.key.random_percent.to_string(),
        }
    }

    /// What all the bars have in common.
    fn constant(self, point: &ComparedPoint) -> String {
        let key = point.key;
        match self {
            Self::Block => format!("{} % read, {} % random", key.read_percent, key.random_percent),
            Self::Read => format!("{}, {} % random", format_bytes(key.block_bytes), key.random_percent),
            Self::Random => format!("{}, {} % read", format_bytes(key.block_bytes), key.read_percent),
        }
    }
}

/// Bars of native and VM side by side along what varies.
pub(super) fn profile(id: &str, points: &[&ComparedPoint], varying: Varying) -> Figure {
    let mut traces = Traces::new();
    for which in Which::BOTH {
        traces.push(bars(points, which, varying));
    }
    let layout = layout()
        .bar_mode(BarMode::Group)
        .bar_gap(0.45)
        .x_axis(axis(varying.title()).type_(AxisType::Category))
        .y_axis(axis("MB/s").range_mode(RangeMode::ToZero));
    let constant = points.first().map_or_else(String::new, |point| varying.constant(point));
    let caption = format!(
        "Throughput in MB/s by {}, native and in the VM, at {constant}. Whiskers are 95 % intervals of the \
         mean, where there are repetitions.",
        varying.title()
    );
    Figure {
        title: format!("Throughput by {}, {constant}", varying.title()),
        key: Vec::new(),
        drawings: vec![Drawing::only(id, caption.clone(), Variant::new("bars", &traces, &layout))],
        caption,
    }
}

fn bars(points: &[&ComparedPoint], which: Which, varying: Varying) -> Box<Bar<String, f64>> {
    let measured: Vec<_> =
        points.iter().filter_map(|point| Some((*point, which.side(point).throughput?))).collect();
    let means: Vec<f64> = measured.iter().map(|(_, estimate)| estimate.mean / MEGABYTE).collect();
    let spans: Vec<Option<Span>> =
        measured.iter().map(|(_, estimate)| estimate.span().map(|span| span.map(|b| b / MEGABYTE))).collect();
    let hover = measured.iter().zip(&means).map(|((point, _), mean)| {
        format!("{}<br>{}: <b>{} MB/s</b>", point.key, which.name(), significant(*mean))
    });
    Bar::new(measured.iter().map(|(point, _)| varying.value(point)).collect(), means.clone())
        .name(which.name())
        .marker(Marker::new().color(colour(which)))
        .hover_text_array(hover.collect())
        .hover_info(HOVER)
        .error_y(whiskers(&means, &spans))
}

/// Error bars that reach to the ends of the intervals; none where there is no interval.
pub(super) fn whiskers(values: &[f64], spans: &[Option<Span>]) -> ErrorData {
    let reach = |end: fn(&Span, f64) -> f64| -> Vec<f64> {
        values
            .iter()
            .zip(spans)
            .map(|(value, span)| span.as_ref().map_or(0.0, |span| end(span, *value).max(0.0)))
            .collect()
    };
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(reach(|span, value| span.high - value))
        .array_minus(reach(|span, value| value - span.low))
        .color(INK)
        .thickness(1.0)
        .width(3)
}
