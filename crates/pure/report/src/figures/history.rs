//! A measure from run to run, with the levels between its changes; and a change, in words.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Scale, Series, look};
use virtbench_model::before_after::Direction;
use virtbench_model::history::{Changed, HistoryGroup, HistoryRun, Newest, Series as Measured};

use super::style::{BETTER, INK, WORSE};
use super::{Drawing, Figure, Table, Values, Variant};
use crate::format::{scaled, significant, with_unit};
use crate::provenance::moment;

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

/// `vm, all points: throughput 60.0 % lower in the newest run, 2026-11-14 (run-19), than before (100 MB/s to 40 MB/s)`.
pub(crate) fn newest_in_words(group: &HistoryGroup, series: &Measured, newest: &Newest) -> String {
    let first = &group.runs[group.runs.len() - newest.runs];
    let which = match newest.runs {
        1 => format!("the newest run, {}", run_name(first)),
        runs => format!("the newest {runs} runs, since {}", run_name(first)),
    };
    let Measured { subject, quantity, unit, .. } = series;
    if newest.after == 0.0 || newest.after.is_infinite() {
        return format!("{subject}: {quantity}: nothing was completed in {which}");
    }
    let (how, percent) = difference(newest.before, newest.after);
    let values = [newest.before, newest.after].map(|value| with_unit(value, unit));
    format!(
        "{subject}: {quantity} {percent} % {how} in {which}, than before ({} to {})",
        values[0], values[1]
    )
}

/// Lower or higher, and by how many percent.
fn difference(before: f64, after: f64) -> (&'static str, String) {
    let how = if after < before { "lower" } else { "higher" };
    (how, significant(100.0 * (after / before - 1.0).abs()))
}

/// `native, all points: throughput 20 % lower since 2026-11-01 (120 MB/s to 96 MB/s; virtbench 0.1.0 to 0.2.0)`.
pub(crate) fn changed_in_words(group: &HistoryGroup, series: &Measured, change: &Changed) -> String {
    let (which, percent) = difference(change.before, change.after);
    let versions: Vec<String> =
        change.versions.iter().map(|[name, before, after]| format!("; {name} {before} to {after}")).collect();
    let verdict = match change.direction {
        Direction::Worse => ", worse",
        Direction::Better => ", better",
        Direction::Equivalent | Direction::Undecided => "",
    };
    if !change.after.is_finite() || change.after == 0.0 {
        let since = run_name(&group.runs[change.run]);
        return format!(
            "{}: {}: nothing was completed since {since}{}",
            series.subject,
            series.quantity,
            versions.concat()
        );
    }
    format!(
        "{}: {} {percent} % {which}{verdict} since {} ({} to {}{})",
        series.subject,
        series.quantity,
        run_name(&group.runs[change.run]),
        with_unit(change.before, &series.unit),
        with_unit(change.after, &series.unit),
        versions.concat()
    )
}

/// The day on which a run began, in UTC, and its folder's last part.
pub(crate) fn run_name(run: &HistoryRun) -> String {
    let name = run.folder.rsplit('/').next().unwrap_or(&run.folder);
    let moment = moment(run.started_unix_s);
    format!("{} ({name})", moment.split('T').next().unwrap_or(&moment))
}
