//! Tables of applications' results (docs/formats.md): users, transactions, and what a transaction costs.

use std::collections::{BTreeMap, BTreeSet};

use csv::{ReaderBuilder, StringRecord, Trim};
use virtbench_record::{ApplicationRow, ApplicationTable, Quantity, ResultTable};

use crate::table::{
    CONFIGURATION, MAX_CONFIGURATIONS, MAX_ROWS, MAX_TABLE_BYTES, MAX_TEXT, TableError, bad, damaged, facts,
    positive, read_table,
};

/// A table of results of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyTable {
    /// Of storage loads: it has a column `block`, or none of an application.
    Points(ResultTable),
    /// Of an application.
    Application(ApplicationTable),
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
    let mut reader =
        ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| damaged(&error))?.clone();
    let quantities: Vec<(usize, Quantity)> = Quantity::ALL
        .into_iter()
        .filter_map(|quantity| Some((position(&header, &[quantity.column()])?, quantity)))
        .collect();
    // Operations per second are a column of both kinds.
    let of_application = quantities.iter().any(|(_, quantity)| *quantity != Quantity::Iops);
    if !of_application || position(&header, &["block", "block_bytes"]).is_some() {
        return read_table(bytes).map(AnyTable::Points);
    }
    let configuration = position(&header, &CONFIGURATION).ok_or(TableError::NoColumn(CONFIGURATION[0]))?;
    let columns = Columns { configuration, repetition: position(&header, &["repetition"]), quantities };
    let mut rows: Vec<ApplicationRow> = Vec::new();
    let mut seen = Seen::default();
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| damaged(&error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let row = columns.row(&record).map_err(|why| TableError::Line { line, why })?;
        seen.add(&row, line)?;
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(TableError::Empty);
    }
    Ok(AnyTable::Application(ApplicationTable { facts: facts(text), rows }))
}

fn position(header: &StringRecord, names: &[&str]) -> Option<usize> {
    header.iter().position(|column| names.contains(&column.to_ascii_lowercase().as_str()))
}

/// Which column is where.
struct Columns {
    configuration: usize,
    repetition: Option<usize>,
    quantities: Vec<(usize, Quantity)>,
}

impl Columns {
    fn row(&self, record: &StringRecord) -> Result<ApplicationRow, String> {
        let cell = |index: usize| record.get(index).unwrap_or_default();
        let name = cell(self.configuration);
        if name.is_empty() || name.chars().count() > MAX_TEXT {
            return Err(bad(CONFIGURATION[0], name));
        }
        let repetition = match self.repetition.map_or("", cell) {
            "" => 0,
            text => text.parse().map_err(|_| bad("repetition", text))?,
        };
        let mut known = BTreeMap::new();
        for (index, quantity) in &self.quantities {
            match cell(*index) {
                "" => {}
                text => {
                    let value = positive(text).ok_or_else(|| bad(quantity.column(), text))?;
                    known.insert(*quantity, value);
                }
            }
        }
        Ok(ApplicationRow { configuration: name.to_owned(), repetition, known })
    }
}

/// What has been read so far, held against the limits.
#[derive(Default)]
struct Seen {
    configurations: BTreeSet<String>,
    rows: BTreeMap<(String, u32), u64>,
}

impl Seen {
    fn add(&mut self, row: &ApplicationRow, line: u64) -> Result<(), TableError> {
        self.configurations.insert(row.configuration.clone());
        if let Some(earlier) = self.rows.insert((row.configuration.clone(), row.repetition), line) {
            let why = format!(
                "{} was given in line {earlier}: number repetitions in a column repetition",
                row.configuration
            );
            return Err(TableError::Line { line, why });
        }
        for (what, number, most) in [
            ("configurations", self.configurations.len(), MAX_CONFIGURATIONS),
            ("rows", self.rows.len(), MAX_ROWS),
        ] {
            if number > most {
                return Err(TableError::TooMany { what, most });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "application_table_tests.rs"]
mod tests;
