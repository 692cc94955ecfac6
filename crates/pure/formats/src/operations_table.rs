//! Tables of management operations (docs/formats.md): latencies over numbers of VMs.

use csv::StringRecord;
use virtbench_record::{OperationKind, TableFacts};

use crate::table::{MAX_ROWS, TableError, bad, facts, positive};
use crate::table_lines::{Lines, position};

/// The columns, all of which there have to be.
const COLUMNS: [&str; 3] = ["operation", "vms", "latency_s"];

/// One latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperationRow {
    /// Of which operation.
    pub kind: OperationKind,
    /// At how many VMs.
    pub vms: f64,
    /// In seconds.
    pub latency_s: f64,
}

/// Latencies over numbers of VMs.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationsTable {
    /// What the table says of itself.
    pub facts: TableFacts,
    /// Its rows.
    pub rows: Vec<OperationRow>,
}

/// Where the columns are, if all of them are there.
pub(crate) fn find(header: &StringRecord) -> Option<[usize; 3]> {
    let [operation, vms, latency] = COLUMNS.map(|name| position(header, &[name]));
    Some([operation?, vms?, latency?])
}

/// Reads the rows.
pub(crate) fn read(
    lines: &mut Lines<'_>,
    columns: [usize; 3],
    text: &str,
) -> Result<OperationsTable, TableError> {
    let (mut rows, mut record) = (Vec::new(), StringRecord::new());
    while let Some(line) = lines.next(&mut record)? {
        rows.push(row(&record, columns).map_err(|why| TableError::Line { line, why })?);
        if rows.len() > MAX_ROWS {
            return Err(TableError::TooMany { what: "rows", most: MAX_ROWS });
        }
    }
    if rows.is_empty() { Err(TableError::Empty) } else { Ok(OperationsTable { facts: facts(text), rows }) }
}

/// Reads a line whose columns are at these places.
fn row(record: &StringRecord, [operation, vms, latency]: [usize; 3]) -> Result<OperationRow, String> {
    let cell = |index: usize| record.get(index).unwrap_or_default();
    let number = |index: usize, name: &str| {
        positive(cell(index)).filter(|value| *value > 0.0).ok_or_else(|| bad(name, cell(index)))
    };
    let name = cell(operation);
    let kind = OperationKind::ALL.into_iter().find(|kind| kind.name() == name);
    Ok(OperationRow {
        kind: kind.ok_or_else(|| bad(COLUMNS[0], name))?,
        vms: number(vms, COLUMNS[1])?,
        latency_s: number(latency, COLUMNS[2])?,
    })
}
