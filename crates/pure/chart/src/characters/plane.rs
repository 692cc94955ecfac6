//! Values over two axes.

use std::fmt::Write as _;

use super::letters::{cut, key, mark, place};
use crate::chart::{Chart, Form, Series};
use crate::layout::Plot;

/// Lines of the plot.
const LINES: usize = 15;
/// Names of values beside it get no more columns.
const NAMES: usize = 12;

/// The plot as it is drawn.
struct Area(Vec<Vec<char>>);

impl Area {
    fn put(&mut self, [column, line]: [usize; 2], letter: char) {
        if let Some(cell) = self.0.get_mut(line).and_then(|cells| cells.get_mut(column)) {
            *cell = match *cell {
                ' ' | '-' | '·' => letter,
                other if other == letter || letter == '·' => other,
                _ => '*',
            };
        }
    }
}

pub(super) fn drawn(chart: &Chart, plot: &Plot, columns: usize) -> String {
    let named = plot.y.ticks.iter().map(|tick| tick.text.chars().count()).max().unwrap_or(0);
    let names = named.min(NAMES);
    let width = columns - names - 2;
    let mut area = Area(vec![vec![' '; width]; LINES]);
    let level = |value: f64| Some(place(1.0 - plot.y.at(value)?, LINES));
    for line in chart.rules.iter().filter_map(|rule| level(rule.at)) {
        area.0[line].fill('-');
    }
    for (index, series) in chart.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty()) {
        let at = |point: &crate::chart::Point| Some([place(plot.x.at(point.x)?, width), level(point.y)?]);
        let places: Vec<Option<[usize; 2]>> = series.points.iter().map(at).collect();
        curve(&mut area, series, mark(index), &places);
    }
    let ticks: Vec<(usize, &str)> =
        plot.y.ticks.iter().filter_map(|tick| Some((level(tick.value)?, tick.text.as_str()))).collect();
    let mut text = String::new();
    // Writing into a string cannot fail.
    if !chart.y.title.is_empty() {
        let _ = writeln!(text, "{}", cut(&chart.y.title, columns));
    }
    for (line, cells) in area.0.iter().enumerate() {
        let name = ticks.iter().find(|(at, _)| *at == line).map_or("", |(_, name)| name);
        let cells: String = cells.iter().collect();
        let _ = writeln!(text, "{:>names$} │{}", cut(name, names), cells.trim_end());
    }
    let _ = writeln!(text, "{:names$} └{}", "", "─".repeat(width));
    let _ = writeln!(text, "{:names$}  {}", "", below(plot, width).trim_end());
    if !chart.x.title.is_empty() {
        let title = format!("{:names$}  {:^width$}", "", cut(&chart.x.title, width));
        let _ = writeln!(text, "{}", title.trim_end());
    }
    let shown: Vec<&str> =
        chart.series.iter().map(|one| if one.points.is_empty() { "" } else { one.name.as_str() }).collect();
    text + &key(&shown, columns)
}

/// Marks of a series, with what is between them where it is a line.
fn curve(area: &mut Area, series: &Series, letter: char, places: &[Option<[usize; 2]>]) {
    let between = if series.form == Form::Line { letter } else { '·' };
    if matches!(series.form, Form::Line | Form::Marked) {
        for pair in places.windows(2) {
            let [Some(from), Some(to)] = pair else { continue };
            let steps = from[0].abs_diff(to[0]).max(from[1].abs_diff(to[1]));
            for step in 1..steps {
                let share = step as f64 / steps as f64;
                let along = |axis: usize| {
                    let (low, high) = (from[axis].min(to[axis]), from[axis].max(to[axis]));
                    let share = if from[axis] <= to[axis] { share } else { 1.0 - share };
                    low + place(share, high - low + 1)
                };
                area.put([along(0), along(1)], between);
            }
        }
    }
    for at in places.iter().flatten() {
        area.put(*at, letter);
    }
}

/// Names of values below the plot, those that have room.
fn below(plot: &Plot, width: usize) -> String {
    let mut line = vec![' '; width];
    let mut free = 0;
    for tick in &plot.x.ticks {
        let Some(share) = plot.x.at(tick.value) else { continue };
        let text = cut(&tick.text, width / 3);
        let length = text.chars().count();
        let begin = place(share, width).saturating_sub(length / 2).min(width - length);
        if begin >= free {
            line.splice(begin..begin + length, text.chars());
            free = begin + length + 1;
        }
    }
    line.into_iter().collect()
}
