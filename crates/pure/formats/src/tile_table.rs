//! Tables of tiles (docs/formats.md): what each member did beside the others, and whether it kept its service levels.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;
use virtbench_record::{INFRASTRUCTURE, TILE_COLUMNS, TileRow, TileTable};

use crate::table::{CONFIGURATION, MAX_CONFIGURATIONS, MAX_ROWS, MAX_TEXT, TableError, bad, facts, positive};
use crate::table_lines::{Lines, Who, position, refuse_unknown};

/// More tiles are a mistake.
const MOST_TILES: u32 = 10_000;

/// The tile of a management operation.
const OF_NO_TILE: &str = "infrastructure";

/// Whether a table with these columns is one of tiles.
pub(crate) fn is_one(header: &StringRecord) -> bool {
    ["tile", "member"].iter().all(|name| position(header, &[name]).is_some())
}

/// Which column is where.
struct Columns {
    who: Who,
    tiles: Option<usize>,
    tile: usize,
    member: usize,
    value: usize,
    reference: usize,
    held: Option<usize>,
}

impl Columns {
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
pub(crate) fn read(lines: &mut Lines<'_>, text: &str) -> Result<TileTable, TableError> {
    refuse_unknown(&lines.header, &[&CONFIGURATION[1..], &TILE_COLUMNS].concat())?;
    let columns = Columns::find(&lines.header)?;
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
#[path = "tile_table_tests.rs"]
mod tests;
