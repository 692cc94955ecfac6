//! Tables for a terminal: columns as wide as what they contain, and at least as wide as asked.

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

#[cfg(test)]
mod tests {
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
}
