//! Tables of results of any kind: the columns tell which.

use virtbench_record::{ApplicationTable, ResultTable, TileTable};

use crate::operations_table::OperationsTable;
use crate::table::{MAX_TABLE_BYTES, TableError, read_table};
use crate::table_lines::{Lines, position};
use crate::{application_table, operations_table, tile_table};

/// A table of results of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyTable {
    /// Of storage loads: it has a column `block`, or none of the others'.
    Points(ResultTable),
    /// Of an application.
    Application(ApplicationTable),
    /// Of tiles.
    Tiles(TileTable),
    /// Of management operations: it has the columns `operation`, `vms` and `latency_s`.
    Operations(OperationsTable),
}

/// Reads a table of results, whichever its columns say it is.
///
/// # Errors
/// It is too large, a column is missing, or a line cannot be understood.
pub fn read_any_table(bytes: &[u8]) -> Result<AnyTable, TableError> {
    if bytes.len() > MAX_TABLE_BYTES {
        return Err(TableError::TooMany { what: "bytes", most: MAX_TABLE_BYTES });
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = Lines::new(text)?;
    if position(&lines.header, &["block", "block_bytes"]).is_some() {
        return read_table(bytes).map(AnyTable::Points);
    }
    if tile_table::is_one(&lines.header) {
        return tile_table::read(&mut lines, text).map(AnyTable::Tiles);
    }
    if let Some(columns) = operations_table::find(&lines.header) {
        return operations_table::read(&mut lines, columns, text).map(AnyTable::Operations);
    }
    match application_table::Columns::find(&lines.header) {
        Some(columns) => application_table::read(&mut lines, &columns?, text).map(AnyTable::Application),
        None => read_table(bytes).map(AnyTable::Points),
    }
}
