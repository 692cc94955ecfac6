//! Throughput along a single axis, where a grid spans no surface.

use virtbench_chart::{Axis, Chart, Form, Point, Series};
use virtbench_model::ComparedPoint;
use virtbench_units::format_bytes;

use super::style::{ends, look_of, rows};
use super::{Drawing, Figure, Values, Variant};
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
            Self::Read => format!("{} % read", point.key.read_percent),
            Self::Random => format!("{} % random", point.key.random_percent),
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

/// Bars of native and VM below each other along what varies.
pub(super) fn profile(id: &str, points: &[&ComparedPoint], varying: Varying) -> Figure {
    let names: Vec<String> = points.iter().map(|point| varying.value(point)).collect();
    let chart = Chart {
        series: Which::BOTH.map(|which| bars(points, which)).into(),
        ..Chart::new(Axis::from_zero("MB/s"), rows(&names))
    };
    let constant = points.first().map_or_else(String::new, |point| varying.constant(point));
    let caption = format!(
        "Throughput in MB/s by {}, native and in the VM, at {constant}. Whiskers are 95 % intervals of the \
         mean, where there are repetitions.",
        varying.title()
    );
    Figure {
        title: format!("Throughput by {}, {constant}", varying.title()),
        drawings: vec![Drawing::only(id, caption.clone(), Variant::chart("", chart))],
        caption,
        values: Values::Under("Every point"),
    }
}

fn bars(points: &[&ComparedPoint], which: Which) -> Series {
    let bar = |(row, point): (usize, &&ComparedPoint)| {
        let found = which.side(point).throughput?;
        let mean = found.mean / MEGABYTE;
        let hover = format!("{}\n{}: {} MB/s", point.key, which.name(), significant(mean));
        let interval = found.span().map(|span| ends(span.map(|bytes| bytes / MEGABYTE)));
        Some(Point::new(mean, row as f64).between(interval).hover(hover).label(significant(mean)))
    };
    Series {
        name: which.name().into(),
        look: look_of(which),
        form: Form::Bars,
        points: points.iter().enumerate().filter_map(bar).collect(),
    }
}
