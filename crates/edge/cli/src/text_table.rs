//! Tables and charts for a terminal, in plain characters.

use std::fmt;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// Blanks between columns, at least.
const GAP: u16 = 2;

/// A column, with the fewest characters it takes together with the gap before it.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    alignment: CellAlignment,
    least: u16,
    wraps: bool,
}

/// A column of words.
pub const fn left(least: u16) -> Column {
    Column { alignment: CellAlignment::Left, least, wraps: false }
}

/// A column of numbers.
pub const fn right(least: u16) -> Column {
    Column { alignment: CellAlignment::Right, least, wraps: false }
}

/// A column of words that is never wider: what does not fit goes on in a line of its own.
pub const fn wrapped(width: u16) -> Column {
    Column { alignment: CellAlignment::Left, least: width, wraps: true }
}

/// A table of text, without rules. It ends without a newline.
#[derive(Debug)]
pub struct TextTable {
    table: Table,
    columns: Vec<Column>,
    indent: usize,
}

impl TextTable {
    /// A table with these columns, as far to the right as `indent`.
    pub fn new(indent: usize, columns: &[Column]) -> Self {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        Self { table, columns: columns.to_vec(), indent }
    }

    /// A row more, the heading too.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.table.add_row(cells.into_iter().map(Into::<String>::into).collect::<Vec<_>>());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = self.table.clone();
        let columns = table.column_iter_mut().zip(&self.columns).enumerate();
        for (index, (column, Column { alignment, least, wraps })) in columns {
            column.set_cell_alignment(*alignment);
            column.set_padding((if index == 0 { 0 } else { GAP }, 0));
            let width = Width::Fixed(*least);
            column.set_constraint(if *wraps {
                ColumnConstraint::Absolute(width)
            } else {
                ColumnConstraint::LowerBoundary(width)
            });
        }
        let indent = " ".repeat(self.indent);
        let lines: Vec<String> = table.lines().map(|line| format!("{indent}{}", line.trim_end())).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Columns and rows of the plotting area.
const SIZE: (usize, usize) = (60, 14);

/// Series over a common x axis from zero, their y axis logarithmic: each a mark and its points.
/// Empty where no point has a positive y.
#[must_use]
pub fn log_chart(
    series: &[(char, Vec<(f64, f64)>)],
    x_title: &str,
    y_label: impl Fn(f64) -> String,
) -> String {
    let usable = |(x, y): &(f64, f64)| x.is_finite() && *x >= 0.0 && y.is_finite() && *y > 0.0;
    let points = || series.iter().flat_map(|(_, points)| points).filter(|point| usable(point));
    let most_x = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let (low, high) =
        points().map(|(_, y)| y.ln()).fold((f64::MAX, f64::MIN), |(l, h), y| (l.min(y), h.max(y)));
    if most_x <= 0.0 || low > high {
        return String::new();
    }
    let (columns, rows) = SIZE;
    let height = (high - low).max(1e-9);
    let mut area = vec![vec![' '; columns]; rows];
    for (mark, points) in series {
        for (x, y) in points.iter().filter(|point| usable(point)) {
            let column = cell(x / most_x, columns);
            let row = rows - 1 - cell((y.ln() - low) / height, rows);
            area[row][column] = if [' ', *mark].contains(&area[row][column]) { *mark } else { '*' };
        }
    }
    let mut text = String::new();
    for (row, line) in area.iter().enumerate() {
        let share = 1.0 - row as f64 / (rows - 1) as f64;
        let label = if row % 4 == 0 || row == rows - 1 {
            y_label((low + share * height).exp())
        } else {
            String::new()
        };
        let line: String = line.iter().collect();
        text += &format!("{label:>10} |{}\n", line.trim_end());
    }
    let end = if most_x < 1e15 { format!("{most_x:.0}") } else { format!("{most_x:.3e}") };
    text += &format!("{:>10} +{}\n", "", "-".repeat(columns));
    text += &format!("{:>12}{x_title:^width$}{end}\n", "0", width = columns.saturating_sub(end.len()));
    text
}

/// Which of `count` cells a share from 0 to 1 falls into.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to count - 1
fn cell(share: f64, count: usize) -> usize {
    (share.clamp(0.0, 1.0) * (count - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_asked_or_as_what_they_contain() {
        let mut table = TextTable::new(1, &[left(6), right(6), left(0)]);
        table.row(["", "mean", "unit"]);
        table.row(["a", "1.5", "/s"]);
        assert_eq!(table.to_string(), "         mean  unit\n a        1.5  /s");
        let mut table = TextTable::new(0, &[left(4), right(4)]);
        table.row(["a name", "12345678"]);
        assert_eq!(table.to_string(), "a name  12345678");
    }

    #[test]
    fn what_is_too_long_goes_on_in_the_next_line() {
        let mut table = TextTable::new(0, &[wrapped(8), right(5)]);
        table.row(["two words", "1"]);
        assert_eq!(table.to_string(), "two         1\nwords");
    }

    #[test]
    fn marks_stand_where_they_belong() {
        let chart = log_chart(&[('m', vec![(0.0, 1.0), (100.0, 100.0)])], "rate", |y| format!("{y:.0}"));
        let lines: Vec<&str> = chart.lines().collect();
        assert!(lines[0].trim_start().starts_with("100 |") && lines[0].ends_with('m'), "{chart}");
        assert!(lines[13].trim_start().starts_with("1 |m"), "{chart}");
        assert!(lines[15].contains("rate") && lines[15].ends_with("100"), "{chart}");
    }

    #[test]
    fn nothing_to_draw_is_nothing() {
        assert_eq!(log_chart(&[('m', vec![(5.0, 0.0), (0.0, f64::NAN)])], "x", |y| y.to_string()), "");
        assert_eq!(log_chart(&[], "x", |y| y.to_string()), "");
    }

    proptest! {
        #[test]
        fn no_points_panic(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..30)) {
            let _ = log_chart(&[('a', points)], "x", |y| format!("{y:e}"));
        }
    }
}
