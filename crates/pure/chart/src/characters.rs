//! Charts in characters, for a terminal, a mail or a comment.

use std::fmt::Write as _;

use crate::axis::Scale;
use crate::chart::{Chart, Form, Point, Series};
use crate::heat::{Cell, HeatMap};
use crate::layout::Plot;
use crate::ticks::{decade, label, sane};

/// Columns at least: with fewer nothing could be told apart.
const LEAST: usize = 40;

impl Chart {
    /// The chart in lines of at most `columns` characters, or of 40 where that is less.
    #[must_use]
    pub fn characters(&self, columns: usize) -> String {
        let (columns, plot) = (columns.max(LEAST), Plot::new(self));
        match self.y.scale {
            Scale::Categories(_) => rows_in_characters(self, &plot, columns),
            _ => plane_in_characters(self, &plot, columns),
        }
    }
}

impl HeatMap {
    /// The map in lines of at most `columns` characters, or of 40 where that is less.
    #[must_use]
    pub fn characters(&self, columns: usize) -> String {
        map_in_characters(self, columns.max(LEAST))
    }
}

/// A series has one of these as its mark, and repeats after the last.
const MARKS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Three digits of a number.
fn number(value: f64) -> String {
    sane(value).map_or_else(
        || "–".into(),
        |value| {
            let step = 10f64.powi(decade(value).max(-290) - 2);
            label(value, step, value.abs(), 1e5)
        },
    )
}

/// Which of `count` places a share from 0 to 1 falls into.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to count - 1")]
fn place(share: f64, count: usize) -> usize {
    (share.clamp(0.0, 1.0) * count.saturating_sub(1) as f64).round() as usize
}

/// The beginning of a text that is too long, with three dots.
fn cut(text: &str, most: usize) -> String {
    // A line of a drawing is one line.
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Numbers, names and marks as letters.
fn mark(index: usize) -> char {
    let marks = MARKS.chars().count();
    MARKS.chars().nth(index % marks).unwrap_or('a')
}

/// Which mark is whose.
fn key(names: &[&str], columns: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {}  {}", mark(index), cut(name, columns - 5));
    }
    text
}

/// From the least to the greatest value.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// A name gets no more columns.
const MAP_NAMES: usize = 20;

/// Nor does a number.
const NUMBERS: usize = 16;

/// A map as a table: each number behind a shade.
fn map_in_characters(map: &HeatMap, columns: usize) -> String {
    let values = || map.cells.iter().flatten().filter_map(|cell| sane(cell.value?));
    let (least, most) =
        values().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    let length = |text: &str| text.chars().count();
    let names =
        map.rows.iter().map(|name| length(name)).max().unwrap_or(0).max(length(&map.y_title)).min(MAP_NAMES);
    let texts = map.cells.iter().flatten().map(|cell| length(&cell.text) + 2);
    let width = texts.chain(map.columns.iter().map(|name| length(name))).max().unwrap_or(0).min(NUMBERS);
    let in_line = ((columns - names) / (width + 2)).max(1);
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{:names$}  {}", cut(&map.y_title, names), cut(&map.x_title, columns - names - 2));
    for first in (0..map.columns.len()).step_by(in_line) {
        let range = first..map.columns.len().min(first + in_line);
        let heads: String =
            map.columns[range.clone()].iter().map(|name| format!("  {:>width$}", cut(name, width))).collect();
        let _ = writeln!(text, "{:names$}{heads}", "");
        for (name, cells) in map.rows.iter().zip(&map.cells) {
            let cells: String = range
                .clone()
                .map(|at| {
                    let shown = cells.get(at).map_or_else(|| "–".into(), |cell| shaded(cell, least, most));
                    format!("  {:>width$}", cut(&shown, width))
                })
                .collect();
            let _ = writeln!(text, "{:>names$}{cells}", cut(name, names));
        }
    }
    text
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of five")]
fn shaded(cell: &Cell, least: f64, most: f64) -> String {
    let Some(value) = cell.value.and_then(sane) else { return "–".into() };
    let share = if least < most { (value - least) / (most - least) } else { 0.5 };
    let shade = SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
    format!("{shade} {}", cell.text)
}

/// Lines of the plot.
const LINES: usize = 15;

/// Names of values beside it get no more columns.
const PLANE_NAMES: usize = 12;

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

/// Values over two axes.
fn plane_in_characters(chart: &Chart, plot: &Plot, columns: usize) -> String {
    let named = plot.y.ticks.iter().map(|tick| tick.text.chars().count()).max().unwrap_or(0);
    let names = named.min(PLANE_NAMES);
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

/// Names get no more of a line than this part.
const ROW_NAMES_SHARE: usize = 3;

/// Columns of the drawing at least.
const BAR_LEAST: usize = 10;

/// One line.
struct Row<'a> {
    name: String,
    /// The series with its place among all, and the points in this row: several of a stack.
    parts: Vec<(usize, &'a Series, &'a Point)>,
    text: String,
}

/// Values in rows: a line for each.
fn rows_in_characters(chart: &Chart, plot: &Plot, columns: usize) -> String {
    let rows = rows(chart, plot);
    let longest =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let names = longest(&mut rows.iter().map(|row| &row.name)).min(columns / ROW_NAMES_SHARE);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Axis, Cell, Colours, Form, Point, Rule, Series, look};

    fn series(name: &str, form: Form, points: Vec<Point>) -> Series {
        Series { name: name.into(), look: look(0), form, points }
    }

    fn longest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_say_them() {
        let rows = Axis::categories("", vec!["4 KiB".into(), "64 KiB".into()]);
        let points = vec![Point::new(50.0, 0.0).between(Some([40.0, 60.0])), Point::new(100.0, 1.0)];
        let chart = Chart {
            series: vec![series("", Form::Bars, points)],
            ..Chart::new(Axis::from_zero("MB/s"), rows)
        };
        let text = chart.characters(80);
        let bar = |line: &str| line.chars().filter(|letter| *letter == '█').count();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(" 4 KiB") && lines[0].ends_with("50 (40 to 60)"), "{text}");
        assert!(lines[1].starts_with("64 KiB") && lines[1].ends_with(" 100"), "{text}");
        assert!(bar(lines[1]).abs_diff(2 * bar(lines[0])) <= 1 && bar(lines[0]) > 5, "{text}");
        assert!(longest(&text) <= 80 && text.contains("MB/s"), "{text}");
    }

    #[test]
    fn marks_stand_where_their_values_are() {
        let line = series("native", Form::Marked, vec![Point::new(0.0, 0.0), Point::new(100.0, 10.0)]);
        let other = series("VM", Form::Marks, vec![Point::new(100.0, 0.0)]);
        let chart = Chart {
            series: vec![line, other],
            rules: vec![Rule { at: 5.0, label: "level".into(), look: look(1) }],
            ..Chart::new(Axis::from_zero("users"), Axis::from_zero("pages/s"))
        };
        let text = chart.characters(80);
        let drawn: Vec<&str> = text.lines().filter(|line| line.contains('│')).collect();
        assert!(drawn[0].trim_end().ends_with('a') && drawn[0].contains("10"), "{text}");
        assert!(
            drawn.last().is_some_and(|line| line.trim_end().ends_with('b') && line.contains("│a")),
            "{text}"
        );
        assert!(text.contains("a  native") && text.contains("b  VM") && text.contains("users"), "{text}");
        assert!(text.contains('-'), "{text}");
    }

    #[test]
    fn a_map_is_a_table_whose_cells_are_shaded() {
        let cell = |value: f64| Cell { value: Some(value), text: format!("{value}"), hover: String::new() };
        let map = HeatMap {
            x_title: "random".into(),
            y_title: "read".into(),
            columns: (0..30).map(|column| format!("{column} %")).collect(),
            rows: vec!["0 %".into(), "100 %".into()],
            cells: vec![(0..30).map(|value| cell(f64::from(value))).collect(), vec![Cell::default(); 30]],
            colours: Colours::Amount(29.0),
            scale: Vec::new(),
        };
        let text = map.characters(80);
        assert!(text.contains("█ 29") && text.contains("░ 7") && text.contains('–'), "{text}");
        assert!(
            longest(&text) <= 80 && text.matches("100 %").count() > 1,
            "the map is broken into parts: {text}"
        );
    }

    proptest! {
        #[test]
        fn any_values_keep_to_the_width(
            values in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20),
            form in prop::sample::select(vec![Form::Line, Form::Marked, Form::Marks, Form::Bars, Form::Stack, Form::Spans]),
            in_rows in any::<bool>(),
            is_logarithmic in any::<bool>(),
            name in ".{0,50}",
            columns in 0usize..120,
        ) {
            let points = values.iter().map(|(x, y)| {
                let y = if in_rows { y.abs() % 3.0 } else { *y };
                Point::new(*x, y.floor()).between(Some([*x, y + 1.0])).label(name.clone())
            });
            let axis = |title: &str| if is_logarithmic { Axis::logarithmic(title) } else { Axis::from_zero(title) };
            let y = if in_rows { Axis::categories("", vec![name.clone(); 3]) } else { axis(&name) };
            let chart = Chart { series: vec![series(&name, form, points.collect())], ..Chart::new(axis(&name), y) };
            let text = chart.characters(columns);
            prop_assert!(longest(&text) <= columns.max(LEAST), "{}", text);
        }
    }
}
