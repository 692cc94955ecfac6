//! Ratios beside each other: in rows with their names if these are few, else as a curve.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Rule, Scale, Series};
use virtbench_model::Span;
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::style::{ends, rows};
use crate::format::ratio;

/// More have no room for their names, and would not fit on a sheet of paper.
pub(super) const ROWS_MOST: usize = 40;

/// One of them.
pub(super) struct Ratio {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) interval: Option<Span>,
    pub(super) hover: String,
    /// Which of the looks is its own.
    pub(super) look: usize,
}

/// The chart, in the order of `ratios`; `looks` with their names.
pub(super) fn ratios(title: &str, ratios: &[Ratio], looks: &[(&str, Look)], rules: Vec<Rule>) -> Chart {
    let has_rows = ratios.len() <= ROWS_MOST;
    let series = looks.iter().enumerate().map(|(index, (name, look))| {
        let own = ratios.iter().enumerate().filter(|(_, one)| one.look == index);
        let point = |(place, one): (usize, &Ratio)| {
            let point = if has_rows {
                Point::new(one.value, place as f64)
            } else {
                Point::new(place as f64 + 1.0, one.value)
            };
            point.between(one.interval.map(ends)).hover(one.hover.clone()).label(ratio(one.value))
        };
        let form = Form::Marks;
        Series { name: (*name).into(), look: *look, form, points: own.map(point).collect() }
    });
    let series = series.collect();
    let names: Vec<String> = ratios.iter().map(|one| one.name.clone()).collect();
    let chart = if has_rows {
        Chart::new(Axis::from_zero(title), rows(&names))
    } else {
        let places = Axis::new("points in ascending order of ratio", Scale::Whole);
        Chart::new(places.within(0.5, ratios.len() as f64 + 0.5), Axis::from_zero(title))
    };
    Chart { series, rules, ..chart }
}

/// A point in few letters: block size, % read / % random.
pub(super) fn short_name(key: PointKey) -> String {
    let PointKey { block_bytes, read_percent, random_percent } = key;
    format!("{}, {read_percent} / {random_percent}", format_bytes(block_bytes))
}
