//! Latency by percentile, in HdrHistogram's manner.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Series, Shape};
use virtbench_record::{PointKey, PointRecord};
use virtbench_units::decode_histogram;

use super::style::look_of;
use super::{Drawing, Figure, Table, Values, Variant};
use crate::format::{MILLISECOND_NS, significant, trimmed};
use crate::run::{Run, RunSide};

/// Curve points for each tenfold of 1/(1-p).
const STEPS_PER_DECADE: i32 = 10;
/// Nines drawn at most: 99.999 99 %.
const DECADES_MOST: i32 = 7;
/// Shares of the operations that the table names, as one over what is left.
const LEFT: [f64; 6] = [2.0, 10.0, 100.0, 1e3, 1e4, 1e5];
const DIRECTIONS: [&str; 2] = ["read", "write"];

/// The curves of every point that has histograms; nothing where none has.
///
/// One point's histograms are decoded at a time: a paper's grid of them takes a hundred megabytes.
pub(crate) fn latency(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> Option<Figure> {
    let mut sides: BTreeMap<PointKey, Vec<(&PointRecord, &RunSide)>> = BTreeMap::new();
    for record in run.records {
        if let Some(side) = run.side_of(record) {
            sides.entry(record.point).or_default().push((record, side));
        }
    }
    let (mut keys, mut variants, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (key, records) in sides {
        let mut joined = Joined::default();
        records.into_iter().for_each(|(record, side)| joined.add(record, side, histograms));
        if !joined.0.is_empty() {
            keys.push(key);
            variants.push(Variant::chart(key.to_string(), joined.chart(run)));
            rows.extend(joined.rows(run, key));
        }
    }
    if variants.is_empty() {
        return None;
    }
    // The middle of the ratio curve is the most typical point there is.
    let curve = run.guests.first().map(|guest| &guest.comparison.curve);
    let typical = curve.and_then(|curve| Some(curve.get(curve.len() / 2)?.key));
    let first = keys.iter().position(|key| Some(*key) == typical).unwrap_or(0);
    let column = |side: &RunSide| DIRECTIONS.map(|direction| format!("{} {direction}, ms", side.name));
    let columns = run.sides.iter().flat_map(column);
    Some(Figure {
        title: "Latency by percentile".into(),
        caption: "How long operations of a point took: all repetitions together. Each step to the \
                  right holds a tenth of the operations of the step before it, so the tail has as much room as \
                  the middle. Lower is faster."
            .into(),
        drawings: vec![Drawing {
            id: "latency".into(),
            label: format!("Latency percentile curves, native and {}; the table below holds the values.", run.guests_in_words()),
            choice: "point",
            variants,
            first,
        }],
        values: Values::Given(Table {
            header: ["point", "percentile"].map(str::to_owned).into_iter().chain(columns).collect(),
            rows,
            names: 2,
            note: String::new(),
        }),
    })
}

/// The histograms of all repetitions of a point, by the place of the side and the direction.
#[derive(Default)]
struct Joined(BTreeMap<(usize, usize), Histogram<u64>>);

impl Joined {
    fn add(&mut self, record: &PointRecord, side: &RunSide, histograms: &BTreeMap<String, String>) {
        for (direction, name) in DIRECTIONS.iter().enumerate() {
            let stored = histograms.get(&format!("{}/{name}", record.histogram_tag()));
            let text = stored.map(String::as_str).or_else(|| inside(record, direction));
            let decoded = text.and_then(|text| decode_histogram(text).ok());
            let Some(histogram) = decoded.filter(|histogram| !histogram.is_empty()) else { continue };
            let Ok(empty) = Histogram::new(3) else { continue };
            let sum = self.0.entry((side.index, direction)).or_insert(empty);
            // Resizing, it takes any value; what it could not take would be missing from the curve only.
            let _ = sum.add(&histogram);
        }
    }

    fn chart(&self, run: &Run<'_>) -> Chart {
        let curves = self.0.iter().filter_map(|((side, direction), histogram)| {
            Some(curve(histogram, run.sides.get(*side)?, DIRECTIONS.get(*direction)?))
        });
        let series: Vec<Series> = curves.collect();
        let ends = series.iter().filter_map(|series| series.points.last());
        let end = ends.map(|point| point.x).fold(10.0, f64::max);
        let nines = (0..=DECADES_MOST).map(|nines| 10f64.powi(nines));
        let ticks = nines.map(|left| (left, format!("{} %", percent(left)))).collect();
        let across = Axis::logarithmic("percentile").within(1.0, end).named(ticks);
        Chart { series, ..Chart::new(across, Axis::logarithmic("latency, ms")) }
    }

    /// A row of the table for each share that some direction has as many operations for.
    fn rows(&self, run: &Run<'_>, key: PointKey) -> Vec<Vec<String>> {
        let of_side = |side: &RunSide| [0, 1].map(|direction| self.0.get(&(side.index, direction)));
        let all = run.sides.iter().flat_map(of_side);
        let all: Vec<Option<&Histogram<u64>>> = all.collect();
        let row = |left: f64| {
            let cells = all.iter().map(|found| {
                let known = found.filter(|histogram| histogram.len() as f64 >= left);
                known.map_or_else(|| "–".into(), |histogram| significant(milliseconds(histogram, left)))
            });
            let cells: Vec<String> = cells.collect();
            let names = [key.to_string(), format!("{} %", percent(left))];
            cells.iter().any(|cell| cell != "–").then(|| names.into_iter().chain(cells).collect())
        };
        LEFT.into_iter().filter_map(row).collect()
    }
}

fn inside(record: &PointRecord, direction: usize) -> Option<&str> {
    let outcome = &record.measured()?.outcome;
    let stats = if direction == 0 { &outcome.read } else { &outcome.write };
    stats.histogram.as_deref()
}

/// The percentile at which one over what is left, 1/(1-p), has this value.
fn percent(left: f64) -> String {
    trimmed(100.0 * (1.0 - 1.0 / left), 6)
}

fn milliseconds(histogram: &Histogram<u64>, left: f64) -> f64 {
    histogram.value_at_quantile(1.0 - 1.0 / left) as f64 / MILLISECOND_NS
}

fn curve(histogram: &Histogram<u64>, side: &RunSide, direction: &str) -> Series {
    let mut points = Vec::new();
    for step in 0..=STEPS_PER_DECADE * DECADES_MOST {
        let left = 10f64.powf(f64::from(step) / f64::from(STEPS_PER_DECADE));
        // Beyond one operation in all, a percentile would only repeat the maximum.
        let last = left >= histogram.len() as f64;
        let left = if last { histogram.len() as f64 } else { left };
        let value = milliseconds(histogram, left);
        let point = Point::new(left, value);
        // What a pointer can read: the nines and the end.
        points.push(if last || step % STEPS_PER_DECADE == 0 {
            point.hover(format!("{} {direction}\n{} %: {} ms", side.name, percent(left), significant(value)))
        } else {
            point
        });
        if last {
            break;
        }
    }
    let dash = if direction == DIRECTIONS[0] { Dash::Solid } else { Dash::Dotted };
    let look = Look { dash, shape: Shape::Circle, ..look_of(side) };
    Series { name: format!("{} {direction}", side.name), look, form: Form::Line, points }
}
