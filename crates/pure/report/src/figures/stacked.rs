//! Times and cycles by what they are spent on: a bar for each name, made of parts.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series};

use super::style::rows;
use crate::format::significant;

/// One part of every bar: its name, its colour, and how much of each bar it is.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) colour: u8,
    pub(super) of_each: Vec<f64>,
}

/// The bars; parts that none of them has are left out. `unit` is behind every number, `axis` below all.
pub(super) fn stacked(axis: &str, unit: &str, names: &[String], parts: &[Part]) -> Chart {
    let drawn = parts.iter().filter(|part| part.of_each.iter().any(|value| *value > 0.0));
    let series = drawn.map(|part| {
        let points = names.iter().zip(&part.of_each).enumerate().map(|(row, (name, value))| {
            let hover = format!("{name}\n{}: {} {unit}", part.name, significant(*value));
            Point::new(*value, row as f64).hover(hover)
        });
        Series {
            name: part.name.clone(),
            look: Look::of_colour(part.colour),
            form: Form::Stack,
            points: points.collect(),
        }
    });
    Chart { series: series.collect(), ..Chart::new(Axis::from_zero(axis), rows(names)) }
}
