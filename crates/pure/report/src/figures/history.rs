//! A measure from run to run, with the levels between its changes.

use plotly::common::{DashType, Line, Marker, Mode};
use plotly::{Scatter, Traces};
use virtbench_model::before_after::Direction;
use virtbench_model::history::{Changed, HistoryGroup, Series};

use super::style::{HOVER, INK, MUTED, NATIVE_COLOUR, VM_COLOUR, axis, layout};
use super::{Drawing, Figure, Variant};
use crate::format::{scaled, with_unit};
use crate::history::{changed_in_words, run_name};

/// How many measures of a group are drawn, at most: its headlines, then the parts that changed.
const MOST: usize = 40;

/// The figures of a group; `index` tells groups apart.
pub(crate) fn history(index: usize, group: &HistoryGroup) -> Vec<Figure> {
    let drawn = group.series.iter().enumerate();
    let drawn = drawn.filter(|(_, series)| series.headline || series.larger_changes().next().is_some());
    let figures = drawn.take(MOST).map(|(number, series)| Figure {
        title: format!("{}: {}", series.subject, series.quantity),
        caption: caption(group, series),
        key: Vec::new(),
        drawings: vec![drawing(&format!("history-{index}-{number}"), group, series)],
    });
    figures.collect()
}

fn caption(group: &HistoryGroup, series: &Series) -> String {
    let changes = series.changes.iter().map(|change| format!("{}.", changed_in_words(group, series, change)));
    let changes: Vec<String> = changes.collect();
    if changes.is_empty() { "It did not change.".into() } else { changes.join(" ") }
}

fn drawing(id: &str, group: &HistoryGroup, series: &Series) -> Drawing {
    let (factor, unit) = scaled(&series.unit);
    let places: Vec<usize> = series.values.iter().map(|(run, _)| run + 1).collect();
    let values: Vec<f64> = series.values.iter().map(|(_, value)| value * factor).collect();
    let hover = series.values.iter().map(|(run, value)| {
        let run = &group.runs[*run];
        let tags = if run.tags.is_empty() { String::new() } else { format!("<br>{}", run.tags.join(", ")) };
        let versions: Vec<String> =
            run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        format!(
            "<b>{}</b><br>{}<br>{}{tags}",
            with_unit(*value, &series.unit),
            run_name(run),
            versions.join("<br>")
        )
    });
    let dots = Scatter::new(places, values)
        .mode(Mode::LinesMarkers)
        .marker(Marker::new().color(NATIVE_COLOUR).size(7))
        .line(Line::new().color(MUTED).width(0.5))
        .hover_text_array(hover.collect())
        .hover_info(HOVER)
        .show_legend(false);
    let mut traces = Traces::new();
    traces.push(dots);
    for (begin, end, level, colour) in levels(group, series) {
        let line = Scatter::new(vec![begin, end], vec![level * factor; 2])
            .mode(Mode::Lines)
            .line(Line::new().color(colour).width(2.5).dash(DashType::Solid))
            .hover_info(plotly::common::HoverInfo::Skip)
            .show_legend(false);
        traces.push(line);
    }
    let axis_title =
        if unit.is_empty() { series.quantity.clone() } else { format!("{}, {unit}", series.quantity) };
    let layout = layout()
        .x_axis(axis("run").show_grid(false).range(vec![0.5, group.runs.len() as f64 + 0.5]))
        .y_axis(axis(&axis_title).range_mode(plotly::layout::RangeMode::ToZero));
    let label = format!(
        "{} of {} in {} runs, one after another; {}",
        series.quantity,
        series.subject,
        series.values.len(),
        caption(group, series)
    );
    Drawing::only(id, label, Variant::new(&series.quantity, &traces, &layout))
}

/// The median between two changes: first and last run as they are counted on the axis, the median, and its colour.
fn levels(group: &HistoryGroup, series: &Series) -> Vec<(f64, f64, f64, &'static str)> {
    let end = group.runs.len() as f64 + 0.4;
    let mut levels = Vec::new();
    let Some(first) = series.changes.first() else { return levels };
    let place = |change: &Changed| change.run as f64 + 0.5;
    levels.push((0.6, place(first), first.before, INK));
    for (index, change) in series.changes.iter().enumerate() {
        let until = series.changes.get(index + 1).map_or(end, place);
        let colour = match change.direction {
            Direction::Worse => VM_COLOUR,
            Direction::Better => "#009E73",
            Direction::Equivalent | Direction::Undecided => INK,
        };
        levels.push((place(change), until, change.after, colour));
    }
    levels
}
