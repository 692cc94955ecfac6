//! Values in rows: a line for each.

use std::fmt::Write as _;

use super::letters::{cut, key, mark, number, place};
use crate::axis::Scale;
use crate::chart::{Chart, Form, Point, Series};
use crate::layout::Plot;

/// Names get no more of a line than this part.
const NAMES: usize = 3;
/// Columns of the drawing at least.
const BAR_LEAST: usize = 10;

/// One line.
struct Row<'a> {
    name: String,
    /// The series with its place among all, and the points in this row: several of a stack.
    parts: Vec<(usize, &'a Series, &'a Point)>,
    text: String,
}

pub(super) fn drawn(chart: &Chart, plot: &Plot, columns: usize) -> String {
    let rows = rows(chart, plot);
    let longest =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let names = longest(&mut rows.iter().map(|row| &row.name)).min(columns / NAMES);
    let free = columns - names - 4;
    let values = longest(&mut rows.iter().map(|row| &row.text)).min(free.saturating_sub(BAR_LEAST));
    let width = free - values;
    let mut text = String::new();
    for row in &rows {
        let name = cut(&row.name, names);
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{name:>names$} │{} {}", bar(row, plot, width), cut(&row.text, values));
    }
    let [low, high] =
        [plot.x.ticks.first(), plot.x.ticks.last()].map(|tick| tick.map_or("", |tick| tick.text.as_str()));
    let title = cut(&chart.x.title, width.saturating_sub(low.len() + high.len() + 4));
    let middle = width.saturating_sub(low.chars().count() + high.chars().count());
    if low != high {
        let line = format!("{:names$}  {low}{title:^middle$}{high}", "");
        let _ = writeln!(text, "{}", cut(line.trim_end(), columns));
    }
    let stacked: Vec<&str> =
        chart.series.iter().map(|one| if one.form == Form::Stack { one.name.as_str() } else { "" }).collect();
    text + &key(&stacked, columns)
}

fn rows<'a>(chart: &'a Chart, plot: &Plot) -> Vec<Row<'a>> {
    let Scale::Categories(names) = &chart.y.scale else { return Vec::new() };
    let shown = || chart.series.iter().enumerate().filter(|(_, series)| series.form != Form::Spans);
    let several = shown().filter(|(_, series)| !series.name.is_empty()).count() > 1;
    let mut rows = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let here = |point: &&Point| plot.y.category(point.y) == Some(at);
        let mut stack = Vec::new();
        for (index, series) in shown() {
            for point in series.points.iter().filter(here) {
                if series.form == Form::Stack {
                    stack.push((index, series, point));
                    continue;
                }
                let name = if several && !series.name.is_empty() {
                    format!("{name}, {}", series.name)
                } else {
                    name.clone()
                };
                rows.push(Row { name, parts: vec![(index, series, point)], text: value(point) });
            }
        }
        if !stack.is_empty() {
            let sum = stack.iter().map(|(_, _, point)| point.x).filter(|x| x.is_finite()).sum();
            rows.push(Row { name: name.clone(), parts: stack, text: number(sum) });
        }
    }
    rows
}

fn value(point: &Point) -> String {
    let interval = point.interval.filter(|[low, high]| low < high);
    interval.map_or_else(
        || number(point.x),
        |[low, high]| format!("{} ({} to {})", number(point.x), number(low), number(high)),
    )
}

fn bar(row: &Row<'_>, plot: &Plot, width: usize) -> String {
    let mut line = vec![' '; width];
    let mut fill = |from: f64, to: f64, letter: char| {
        let (from, to) = (place(from.min(to), width), place(from.max(to), width));
        line[from..=to].fill(letter);
    };
    let mut sum = 0.0;
    for (index, series, point) in &row.parts {
        let Some(at) = plot.x.at(point.x) else { continue };
        match series.form {
            Form::Bars => fill(plot.x.base(), at, '█'),
            Form::Stack => {
                let from = plot.x.at(sum).unwrap_or(0.0);
                sum += point.x;
                fill(from, plot.x.at(sum).unwrap_or(from), mark(*index));
            }
            Form::Line | Form::Marked | Form::Marks | Form::Spans => {
                let ends = point.interval.and_then(|[low, high]| Some([plot.x.at(low)?, plot.x.at(high)?]));
                if let Some([low, high]) = ends {
                    fill(low, high, '─');
                }
                fill(at, at, '●');
            }
        }
    }
    line.into_iter().collect()
}
