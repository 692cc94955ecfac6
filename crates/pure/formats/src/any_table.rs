//! Tables of results of any kind: the columns tell which.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;
use virtbench_record::{
    ApplicationRow, ApplicationTable, INFRASTRUCTURE, OperationKind, Quantity, ResultTable, TILE_COLUMNS,
    TableFacts, TileRow, TileTable,
};

use crate::table::{
    CONFIGURATION, Lines, MAX_CONFIGURATIONS, MAX_ROWS, MAX_TABLE_BYTES, MAX_TEXT, TableError, Who, bad,
    facts, position, positive, read_table, refuse_unknown,
};

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
    if is_one(&lines.header) {
        return read_tile_table(&mut lines, text).map(AnyTable::Tiles);
    }
    if let Some(columns) = find(&lines.header) {
        return read_operations_table(&mut lines, columns, text).map(AnyTable::Operations);
    }
    match ApplicationColumns::find(&lines.header) {
        Some(columns) => read_application_table(&mut lines, &columns?, text).map(AnyTable::Application),
        None => read_table(bytes).map(AnyTable::Points),
    }
}

/// Which column is where.
pub(crate) struct ApplicationColumns {
    who: Who,
    quantities: Vec<(usize, Quantity)>,
}

impl ApplicationColumns {
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
pub(crate) fn read_application_table(
    lines: &mut Lines<'_>,
    columns: &ApplicationColumns,
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
pub(crate) fn read_operations_table(
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

/// More tiles are a mistake.
const MOST_TILES: u32 = 10_000;

/// The tile of a management operation.
const OF_NO_TILE: &str = "infrastructure";

/// Whether a table with these columns is one of tiles.
pub(crate) fn is_one(header: &StringRecord) -> bool {
    ["tile", "member"].iter().all(|name| position(header, &[name]).is_some())
}

/// Which column is where.
struct TileColumns {
    who: Who,
    tiles: Option<usize>,
    tile: usize,
    member: usize,
    value: usize,
    reference: usize,
    held: Option<usize>,
}

impl TileColumns {
    fn find(header: &StringRecord) -> Result<Self, TableError> {
        let needed = |name: &'static str| position(header, &[name]).ok_or(TableError::NoColumn(name));
        Ok(Self {
            who: Who::find(header)?,
            tiles: position(header, &["tiles"]),
            tile: needed("tile")?,
            member: needed("member")?,
            value: needed("value")?,
            reference: needed("reference")?,
            held: position(header, &["held"]),
        })
    }

    /// A row; zero tiles where the table does not say how many.
    fn row(&self, record: &StringRecord) -> Result<TileRow, String> {
        let cell = |index: usize| record.get(index).unwrap_or_default();
        let number = |name: &str, text: &str| match text.parse() {
            Ok(number @ 1..=MOST_TILES) => Ok(number),
            _ => Err(bad(name, text)),
        };
        let (configuration, repetition) = self.who.of(record)?;
        let tiles = match self.tiles.map_or("", cell) {
            "" => 0,
            text => number("tiles", text)?,
        };
        let tile = match cell(self.tile) {
            OF_NO_TILE => INFRASTRUCTURE,
            text => number("tile", text)?,
        };
        if tiles > 0 && tile > tiles {
            return Err(format!("tile {tile} of {tiles}: tiles are numbered from 1"));
        }
        let member = cell(self.member);
        if member.is_empty() || member.chars().count() > MAX_TEXT {
            return Err(bad("member", member));
        }
        let held = match self.held.map_or("", cell).to_ascii_lowercase().as_str() {
            "" => None,
            "yes" | "true" => Some(true),
            "no" | "false" => Some(false),
            text => return Err(format!("held {text:?}: write yes or no, or leave it out")),
        };
        let done = done(cell(self.value), cell(self.reference))?;
        Ok(TileRow { configuration, repetition, tiles, tile, member: member.to_owned(), done, held })
    }
}

/// What a member did and what the reference system does; nothing of one that is not scored.
fn done(value: &str, reference: &str) -> Result<Option<[f64; 2]>, String> {
    if value.is_empty() && reference.is_empty() {
        return Ok(None);
    }
    let value = positive(value).ok_or_else(|| bad("value", value))?;
    match positive(reference) {
        // Who did nothing has the score 0, whatever it is held against.
        Some(reference) if reference > 0.0 || value == 0.0 => Ok(Some([value, reference])),
        _ => Err(bad("reference", reference)),
    }
}

/// Reads the rows.
pub(crate) fn read_tile_table(lines: &mut Lines<'_>, text: &str) -> Result<TileTable, TableError> {
    refuse_unknown(&lines.header, &[&CONFIGURATION[1..], &TILE_COLUMNS].concat())?;
    let columns = TileColumns::find(&lines.header)?;
    let (mut rows, mut record) = (Vec::new(), StringRecord::new());
    let mut configurations = BTreeSet::new();
    let mut seen: BTreeMap<(String, u32, u32, u32, String), u64> = BTreeMap::new();
    while let Some(line) = lines.next(&mut record)? {
        let row = columns.row(&record).map_err(|why| TableError::Line { line, why })?;
        configurations.insert(row.configuration.clone());
        let key = (row.configuration.clone(), row.repetition, row.tiles, row.tile, row.member.clone());
        if let Some(earlier) = seen.insert(key, line) {
            let why = format!(
                "{} of tile {} was given in line {earlier}: number repetitions in a column repetition",
                row.member, row.tile
            );
            return Err(TableError::Line { line, why });
        }
        rows.push(row);
        for (what, number, most) in
            [("configurations", configurations.len(), MAX_CONFIGURATIONS), ("rows", rows.len(), MAX_ROWS)]
        {
            if number > most {
                return Err(TableError::TooMany { what, most });
            }
        }
    }
    if rows.is_empty() {
        return Err(TableError::Empty);
    }
    count_tiles(&mut rows);
    if let Some(row) = rows.iter().find(|row| row.tiles == 0) {
        return Err(TableError::NoTile { configuration: row.configuration.clone() });
    }
    Ok(TileTable { facts: facts(text), rows })
}

/// Where a table does not say how many tiles ran at once, they are those it has of a run.
fn count_tiles(rows: &mut [TileRow]) {
    let mut most: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for row in rows.iter() {
        let known = most.entry((row.configuration.clone(), row.repetition)).or_default();
        *known = row.tile.max(*known);
    }
    for row in rows.iter_mut().filter(|row| row.tiles == 0) {
        row.tiles = most[&(row.configuration.clone(), row.repetition)];
    }
}

#[cfg(test)]
#[path = "application_table_tests.rs"]
mod application_table_tests;

#[cfg(test)]
#[path = "tile_table_tests.rs"]
mod tile_table_tests;
