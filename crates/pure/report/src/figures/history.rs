//! A measure from run to run, with the levels between its changes.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Scale, Series, look};
use virtbench_model::before_after::Direction;
use virtbench_model::history::{Changed, HistoryGroup, Series as Measured};

use super::style::{BETTER, INK, WORSE};
use super::{Drawing, Figure, Table, Values, Variant};
use crate::format::{scaled, significant, with_unit};
use crate::history_words::{changed_in_words, newest_in_words, run_name};

/// How many measures of a group are drawn, at most: its headlines, then the parts that changed.
const MOST: usize = 40;

/// The figures of a group; `index` tells groups apart.
pub(crate) fn history(index: usize, group: &HistoryGroup) -> Vec<Figure> {
    let drawn = group.series.iter().enumerate();
    let drawn = drawn.filter(|(_, series)| series.headline || series.larger_changes().next().is_some());
    let figures = drawn.take(MOST).map(|(number, series)| Figure {
        title: format!("{}: {}", series.subject, series.quantity),
        caption: caption(group, series),
        drawings: vec![drawing(&format!("history-{index}-{number}"), group, series)],
        values: Values::Given(table(group, series)),
    });
    figures.collect()
}

fn caption(group: &HistoryGroup, series: &Measured) -> String {
    let changes = series.changes.iter().map(|change| format!("{}.", changed_in_words(group, series, change)));
    let newest = series.newest.as_ref().map(|newest| format!("{}.", newest_in_words(group, series, newest)));
    let changes: Vec<String> = changes.chain(newest).collect();
    if changes.is_empty() { "It did not change.".into() } else { changes.join(" ") }
}

fn table(group: &HistoryGroup, series: &Measured) -> Table {
    let (factor, unit) = scaled(&series.unit);
    let rows = series.values.iter().map(|(run, value)| {
        vec![(run + 1).to_string(), run_name(&group.runs[*run]), significant(value * factor)]
    });
    let value = titled(&series.quantity, unit);
    Table {
        header: vec!["run".into(), "began".into(), value],
        rows: rows.collect(),
        names: 2,
        note: String::new(),
    }
}

fn titled(quantity: &str, unit: &str) -> String {
    if unit.is_empty() { quantity.to_owned() } else { format!("{quantity}, {unit}") }
}

fn drawing(id: &str, group: &HistoryGroup, series: &Measured) -> Drawing {
    let (factor, unit) = scaled(&series.unit);
    // What completed nothing and has no number stands in the table.
    let shown = series.values.iter().filter(|(_, value)| value.is_finite());
    let points = shown.map(|(run, value)| {
        let place = (run + 1) as f64;
        let run = &group.runs[*run];
        let tags = if run.tags.is_empty() { String::new() } else { format!("\n{}", run.tags.join(", ")) };
        let versions: Vec<String> =
            run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let value_in_words = with_unit(*value, &series.unit);
        let hover = format!("{value_in_words}\n{}\n{}{tags}", run_name(run), versions.join("\n"));
        Point::new(place, value * factor).hover(hover)
    });
    let measured =
        Series { name: "a run".into(), look: look(0), form: Form::Marks, points: points.collect() };
    let levels = levels(group, series).into_iter().map(|(begin, end, level, colour)| Series {
        name: match colour {
            WORSE => "median, worse".into(),
            BETTER => "median, better".into(),
            _ => "median".into(),
        },
        look: Look::of_colour(colour),
        form: Form::Line,
        points: [begin, end].map(|place| Point::new(place, level * factor)).into(),
    });
    let across = Axis::new("run", Scale::Whole).within(0.5, group.runs.len() as f64 + 0.5);
    let chart = Chart {
        series: levels.chain([measured]).collect(),
        ..Chart::new(across, Axis::from_zero(titled(&series.quantity, unit)))
    };
    let label = format!(
        "{} of {} in {} runs, one after another; {}",
        series.quantity,
        series.subject,
        series.values.len(),
        caption(group, series)
    );
    Drawing::only(id, label, Variant::chart("", chart))
}

/// The median between two changes: first and last run as they are counted on the axis, the median, and its colour.
fn levels(group: &HistoryGroup, series: &Measured) -> Vec<(f64, f64, f64, u8)> {
    let end = group.runs.len() as f64 + 0.4;
    let mut levels = Vec::new();
    let Some(first) = series.changes.first() else { return levels };
    let place = |change: &Changed| change.run as f64 + 0.5;
    levels.push((0.6, place(first), first.before, INK));
    for (index, change) in series.changes.iter().enumerate() {
        let until = series.changes.get(index + 1).map_or(end, place);
        let colour = match change.direction {
            Direction::Worse => WORSE,
            Direction::Better => BETTER,
            Direction::Equivalent | Direction::Undecided => INK,
        };
        levels.push((place(change), until, change.after, colour));
    }
    levels.retain(|(_, _, level, _)| level.is_finite());
    levels
}
