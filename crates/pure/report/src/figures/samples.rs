//! The samples of a study of sides: bars side by side, and distributions of times.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::samples::{SampleFound, SamplesAnalysis, SamplesSide};

use super::style::{INK, ends, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{scaled, significant, with_unit};

/// A drawing for each sample, then one for each kind of time. Nothing where nothing was measured.
pub(crate) fn samples(analysis: &SamplesAnalysis) -> Vec<Figure> {
    let measured: Vec<&SamplesSide> = analysis.sides.iter().filter(|side| !side.samples.is_empty()).collect();
    let mut names: Vec<&str> = Vec::new();
    for sample in measured.iter().flat_map(|side| &side.samples) {
        if !names.contains(&sample.name.as_str()) {
            names.push(&sample.name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let drawings = names.iter().enumerate().map(|(index, name)| bars(&measured, name, index)).collect();
    let bars = Figure {
        title: "Each side".into(),
        caption: "Bars are means with their 95 % intervals; each mark is a repetition, between machines of its own.".into(),
        drawings,
        values: Values::Own,
    };
    [Some(bars), distributions(&measured)].into_iter().flatten().collect()
}

fn bars(sides: &[&SamplesSide], name: &str, index: usize) -> Drawing {
    let with: Vec<(&SamplesSide, &SampleFound)> =
        sides.iter().filter_map(|side| Some((*side, side.sample(name)?))).collect();
    let unit = with.first().map_or("", |(_, found)| found.unit.as_str());
    let (factor, shown) = scaled(unit);
    let names: Vec<String> = with.iter().map(|(side, _)| side.name.clone()).collect();
    let bar = |(row, (side, found)): (usize, &(&SamplesSide, &SampleFound))| {
        let estimate = found.estimate?;
        let interval = estimate.span().map(|span| ends(span.map(|value| value * factor)));
        let point = Point::new(estimate.mean * factor, row as f64).between(interval);
        let hover = format!("{}: {}", side.name, with_unit(estimate.mean, unit));
        Some(point.hover(hover).label(significant(estimate.mean * factor)))
    };
    let points = with.iter().enumerate().filter_map(bar).collect();
    let bars = Series { name: "mean".into(), look: look(0), form: Form::Bars, points };
    let marks = with.iter().enumerate().flat_map(|(row, (side, found))| {
        found.values.iter().map(move |(repetition, value)| {
            let hover =
                format!("{}, repetition {}: {}", side.name, repetition + 1, significant(value * factor));
            Point::new(value * factor, row as f64).hover(hover)
        })
    });
    let marks = Series {
        name: "a repetition".into(),
        look: Look::of_colour(INK).shaped(Shape::Diamond),
        form: Form::Marks,
        points: marks.collect(),
    };
    let title = if shown.is_empty() { name.to_owned() } else { format!("{name}, {shown}") };
    let chart = Chart { series: vec![bars, marks], ..Chart::new(Axis::from_zero(title), rows(&names)) };
    let label = format!("{name} of each side; the table below holds the values.");
    Drawing::only(&format!("sample-{index}"), label, Variant::chart(name, chart))
}

/// The part of all times that is shorter, over the time.
fn distributions(sides: &[&SamplesSide]) -> Option<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for times in sides.iter().flat_map(|side| &side.times) {
        if !names.contains(&times.name.as_str()) {
            names.push(&times.name);
        }
    }
    let drawing = |(index, name): (usize, &&str)| {
        let series = sides.iter().enumerate().filter_map(|(number, side)| {
            let times = side.times.iter().find(|times| times.name == **name)?;
            let total: u64 = times.counts.iter().map(|(_, count)| count).sum();
            let mut below = 0;
            let point = |(end, count): &(u64, u64)| {
                below += count;
                Point::new(*end as f64 / 1e3, 100.0 * below as f64 / total.max(1) as f64)
            };
            let points = times.counts.iter().map(point).collect();
            Some(Series { name: side.name.clone(), look: look(number), form: Form::Line, points })
        });
        let series = series.collect();
        let axes =
            Chart::new(Axis::logarithmic(format!("{name}, us")), Axis::from_zero("% that are quicker"));
        let chart = Chart { series, ..axes };
        let label = format!("How long a {name} takes on each side: the part of them that is quicker.");
        Drawing::only(&format!("times-{index}"), label, Variant::chart(*name, chart))
    };
    let drawings: Vec<Drawing> = names.iter().enumerate().map(drawing).collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "How long it takes".into(),
        caption:
            "Of all repetitions together. A step means that many take as long; two steps mean two groups."
                .into(),
        drawings,
        values: Values::Own,
    })
}
