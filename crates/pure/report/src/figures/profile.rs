//! Throughput along a single axis, where a grid spans no surface.

use virtbench_chart::{Axis, Chart, Form, Point, Series};
use virtbench_units::format_bytes;

use super::style::{ends, look_of, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{MEGABYTE, significant};
use crate::run::{Run, RunPoint, RunSide};

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

    fn value(self, point: &RunPoint) -> String {
        match self {
            Self::Block => format_bytes(point.key.block_bytes),
            Self::Read => format!("{} % read", point.key.read_percent),
            Self::Random => format!("{} % random", point.key.random_percent),
        }
    }

    /// What all the bars have in common.
    fn constant(self, point: &RunPoint) -> String {
        let key = point.key;
        match self {
            Self::Block => format!("{} % read, {} % random", key.read_percent, key.random_percent),
            Self::Read => format!("{}, {} % random", format_bytes(key.block_bytes), key.random_percent),
            Self::Random => format!("{}, {} % read", format_bytes(key.block_bytes), key.read_percent),
        }
    }
}

/// Bars of all sides below each other along what varies.
pub(super) fn profile(id: &str, run: &Run<'_>, points: &[&RunPoint], varying: Varying) -> Figure {
    let names: Vec<String> = points.iter().map(|point| varying.value(point)).collect();
    let chart = Chart {
        series: run.sides.iter().map(|side| bars(points, side)).collect(),
        ..Chart::new(Axis::from_zero("MB/s"), rows(&names))
    };
    let constant = points.first().map_or_else(String::new, |point| varying.constant(point));
    let caption = format!(
        "Throughput in MB/s by {}, {}, at {constant}. Whiskers are 95 % intervals of the \
         mean, where there are repetitions.",
        varying.title(),
        places(run)
    );
    Figure {
        title: format!("Throughput by {}, {constant}", varying.title()),
        drawings: vec![Drawing::only(id, caption.clone(), Variant::chart("", chart))],
        caption,
        values: Values::Under("Every point"),
    }
}

/// Where all sides measured, within a sentence: `native and in the VM`.
pub(super) fn places(run: &Run<'_>) -> String {
    match run.only_guest() {
        Some(guest) => format!("native and {}", guest.side.place),
        None => format!("native and in VMs under {}", run.guests_in_words()),
    }
}

fn bars(points: &[&RunPoint], side: &RunSide) -> Series {
    let bar = |(row, point): (usize, &&RunPoint)| {
        let found = point.side(side)?.throughput?;
        let mean = found.mean / MEGABYTE;
        let hover = format!("{}\n{}: {} MB/s", point.key, side.name, significant(mean));
        let interval = found.span().map(|span| ends(span.map(|bytes| bytes / MEGABYTE)));
        Some(Point::new(mean, row as f64).between(interval).hover(hover).label(significant(mean)))
    };
    Series {
        name: side.name.clone(),
        look: look_of(side),
        form: Form::Bars,
        points: points.iter().enumerate().filter_map(bar).collect(),
    }
}
