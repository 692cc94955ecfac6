//! What the members of tiles did as CSV: the columns of a table of tiles, which `virtbench analyse` reads, and more.

use csv::Writer;
use virtbench_model::tiles_study::tile_rows;
use virtbench_record::{INFRASTRUCTURE, TILE_COLUMNS, TileDone, TileRow, TilesPlan, TilesRecord};

use crate::rows::{CsvError, text};

/// One row for each member of each tile of every run that counts.
pub(crate) fn tiles_csv(plan: &TilesPlan, records: &[TilesRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(TILE_COLUMNS)?;
    for row in tile_rows(plan, records) {
        let done = done(records, &row);
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let part = |place: usize| row.done.map_or_else(String::new, |done| done[place].to_string());
        let percentile = plan.member(&row.member).map_or(0.0, |member| member.levels.percentile);
        writer.write_record([
            row.configuration.clone(),
            row.repetition.to_string(),
            row.tiles.to_string(),
            if row.tile == INFRASTRUCTURE { "infrastructure".into() } else { row.tile.to_string() },
            row.member.clone(),
            part(0),
            part(1),
            if row.held == Some(true) { "yes".to_owned() } else { "no".to_owned() },
            number(done.and_then(|done| done.response_ns(percentile))),
            number(done.and_then(|done| done.completed)),
            number(done.map(|done| done.failed)),
        ])?;
    }
    text(writer)
}

/// What is behind a row.
fn done<'a>(records: &'a [TilesRecord], row: &TileRow) -> Option<&'a TileDone> {
    let mut counts = records.iter().filter(|record| record.void().is_none());
    let record =
        counts.rfind(|record| record.key.tiles == row.tiles && record.key.repetition == row.repetition)?;
    let members = &record.measured()?.members;
    members.iter().find(|one| one.tile == row.tile && one.member == row.member)?.done.as_ref()
}
