//! Latency by percentile, in HdrHistogram's manner.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plotly::common::{DashType, Line, Mode};
use plotly::layout::AxisType;
use plotly::{Scatter, Traces};
use virtbench_record::{PointKey, PointRecord};
use virtbench_units::decode_histogram;

use super::style::{axis, colour, layout, logarithmic};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::MILLISECOND_NS;
use crate::run::{Run, Which};

/// Curve points for each tenfold of 1/(1-p).
const STEPS_PER_DECADE: i32 = 10;
/// Nines drawn at most: 99.999 99 %.
const DECADES_MOST: i32 = 7;

/// The curves of every point that has histograms; nothing where none has.
///
/// One point's histograms are decoded at a time: a paper's grid of them takes a hundred megabytes.
pub(crate) fn latency(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> Option<Figure> {
    let mut sides: BTreeMap<PointKey, Vec<(&PointRecord, Which)>> = BTreeMap::new();
    for record in run.records {
        if let Some(which) = run.side_of(record) {
            sides.entry(record.point).or_default().push((record, which));
        }
    }
    let (keys, variants): (Vec<PointKey>, Vec<Variant>) = sides
        .into_iter()
        .filter_map(|(key, records)| {
            let mut joined = Joined::default();
            records.into_iter().for_each(|(record, which)| joined.add(record, which, histograms));
            (!joined.0.is_empty()).then(|| (key, joined.variant(&key.to_string())))
        })
        .unzip();
    if variants.is_empty() {
        return None;
    }
    // The middle of the ratio curve is the most typical point there is.
    let curve = &run.comparison.curve;
    let typical = curve.get(curve.len() / 2).map(|point| point.key);
    let first = keys.iter().position(|key| Some(*key) == typical).unwrap_or(0);
    Some(Figure {
        title: "Latency by percentile".into(),
        caption: "How long operations of the selected point took: all repetitions together. Each step to the \
                  right holds a tenth of the operations of the step before it, so the tail has as much room as \
                  the middle. Lower is faster."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "latency".into(),
            label: format!(
                "Latency percentile curves, native and VM, of one of {} points; the table below holds the means.",
                variants.len()
            ),
            choice: Choice::Select("Point"),
            variants,
            first,
        }],
    })
}

const DIRECTIONS: [(&str, DashType); 2] = [("read", DashType::Solid), ("write", DashType::Dot)];

/// The histograms of all repetitions of a point, by side (VM or not) and direction.
#[derive(Default)]
struct Joined(BTreeMap<(bool, usize), Histogram<u64>>);

impl Joined {
    fn add(&mut self, record: &PointRecord, which: Which, histograms: &BTreeMap<String, String>) {
        for (direction, (name, _)) in DIRECTIONS.iter().enumerate() {
            let stored = histograms.get(&format!("{}/{name}", record.histogram_tag()));
            let text = stored.map(String::as_str).or_else(|| inside(record, direction));
            let decoded = text.and_then(|text| decode_histogram(text).ok());
            let Some(histogram) = decoded.filter(|histogram| !histogram.is_empty()) else { continue };
            let Ok(empty) = Histogram::new(3) else { continue };
            let sum = self.0.entry((which == Which::Vm, direction)).or_insert(empty);
            // Resizing, it takes any value; what it could not take would be missing from the curve only.
            let _ = sum.add(&histogram);
        }
    }

    fn variant(&self, name: &str) -> Variant {
        let mut traces = Traces::new();
        for ((vm, direction), histogram) in &self.0 {
            let which = if *vm { Which::Vm } else { Which::Native };
            let (direction, dash) = &DIRECTIONS[*direction];
            traces.push(curve(histogram, which, direction, dash.clone()));
        }
        let ticks: Vec<f64> = (0..=DECADES_MOST).map(|nines| 10f64.powi(nines)).collect();
        let texts = ticks.iter().map(|inverse| percent_text(*inverse)).collect();
        let layout = layout()
            .x_axis(axis("percentile").type_(AxisType::Log).tick_values(ticks).tick_text(texts))
            .y_axis(logarithmic(axis("latency, ms")));
        Variant::new(name, &traces, &layout)
    }
}

fn inside(record: &PointRecord, direction: usize) -> Option<&str> {
    let outcome = &record.measured()?.outcome;
    let stats = if direction == 0 { &outcome.read } else { &outcome.write };
    stats.histogram.as_deref()
}

/// The percentile at which 1/(1-p) has this value.
fn percent_text(inverse: f64) -> String {
    let percent = 100.0 * (1.0 - 1.0 / inverse);
    format!("{} %", (percent * 1e6).round() / 1e6)
}

fn curve(
    histogram: &Histogram<u64>,
    which: Which,
    direction: &str,
    dash: DashType,
) -> Box<Scatter<f64, f64>> {
    // What hovering shows is put together from these: percentages repeat from curve to curve, sentences would not.
    let (mut x, mut y, mut percents) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..=STEPS_PER_DECADE * DECADES_MOST {
        let inverse = 10f64.powf(f64::from(step) / f64::from(STEPS_PER_DECADE));
        // Beyond one operation in all, a percentile would only repeat the maximum.
        let last = inverse >= histogram.len() as f64;
        let inverse = if last { histogram.len() as f64 } else { inverse };
        let milliseconds = histogram.value_at_quantile(1.0 - 1.0 / inverse) as f64 / MILLISECOND_NS;
        x.push(inverse);
        y.push(drawn(milliseconds));
        percents.push(percent_text(inverse));
        if last {
            break;
        }
    }
    Scatter::new(x, y)
        .name(format!("{} {direction}", which.name()))
        .mode(Mode::Lines)
        .line(Line::new().color(colour(which)).width(2.0).dash(dash))
        .text_array(percents)
        .hover_template(format!(
            "{} {direction}<br>%{{text}}: <b>%{{y:,.3r}} ms</b><extra></extra>",
            which.name()
        ))
}

/// To four digits: more than a page can show, and than a histogram knows.
fn drawn(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
