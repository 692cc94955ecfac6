//! Tables of applications' results (docs/formats.md): users, transactions, and what a transaction costs.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;
use virtbench_record::{ApplicationRow, ApplicationTable, Quantity};

use crate::table::{MAX_CONFIGURATIONS, MAX_ROWS, TableError, bad, facts, positive};
use crate::table_lines::{Lines, Who, position};

/// Which column is where.
pub(crate) struct Columns {
    who: Who,
    quantities: Vec<(usize, Quantity)>,
}

impl Columns {
    /// The columns of an application's table; nothing where the table is of another kind.
    pub(crate) fn find(header: &StringRecord) -> Option<Result<Self, TableError>> {
        let quantities: Vec<(usize, Quantity)> = Quantity::ALL
            .into_iter()
            .filter_map(|quantity| Some((position(header, &[quantity.column()])?, quantity)))
            .collect();
        // Operations per second are a column of storage loads, too.
        let of_application = quantities.iter().any(|(_, quantity)| *quantity != Quantity::Iops);
        of_application.then(|| Ok(Self { who: Who::find(header)?, quantities }))
    }

    fn row(&self, record: &StringRecord) -> Result<ApplicationRow, String> {
        let (configuration, repetition) = self.who.of(record)?;
        let mut known = BTreeMap::new();
        for (index, quantity) in &self.quantities {
            match record.get(*index).unwrap_or_default() {
                "" => {}
                text => {
                    let value = positive(text).ok_or_else(|| bad(quantity.column(), text))?;
                    known.insert(*quantity, value);
                }
            }
        }
        Ok(ApplicationRow { configuration, repetition, known })
    }
}

/// Reads the rows.
pub(crate) fn read(
    lines: &mut Lines<'_>,
    columns: &Columns,
    text: &str,
) -> Result<ApplicationTable, TableError> {
    let (mut rows, mut seen, mut record) = (Vec::new(), RowsRead::default(), StringRecord::new());
    while let Some(line) = lines.next(&mut record)? {
        let row = columns.row(&record).map_err(|why| TableError::Line { line, why })?;
        seen.add(&row, line)?;
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(TableError::Empty);
    }
    Ok(ApplicationTable { facts: facts(text), rows })
}

/// What has been read so far, held against the limits.
#[derive(Default)]
struct RowsRead {
    configurations: BTreeSet<String>,
    rows: BTreeMap<(String, u32), u64>,
}

impl RowsRead {
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
