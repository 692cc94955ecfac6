//! Charts in characters, for a terminal, a mail or a comment.

mod letters;
mod map;
mod plane;
mod rows;

use crate::axis::Scale;
use crate::chart::Chart;
use crate::heat::HeatMap;
use crate::layout::Plot;

/// Columns at least: with fewer nothing could be told apart.
const LEAST: usize = 40;
impl Chart {
    /// The chart in lines of at most `columns` characters, or of 40 where that is less.
    #[must_use]
    pub fn characters(&self, columns: usize) -> String {
        let (columns, plot) = (columns.max(LEAST), Plot::new(self));
        match self.y.scale {
            Scale::Categories(_) => rows::drawn(self, &plot, columns),
            _ => plane::drawn(self, &plot, columns),
        }
    }
}

impl HeatMap {
    /// The map in lines of at most `columns` characters, or of 40 where that is less.
    #[must_use]
    pub fn characters(&self, columns: usize) -> String {
        map::drawn(self, columns.max(LEAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Cell, Colours, Form, Point, Rule, Series, look};
    use proptest::prelude::*;

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
