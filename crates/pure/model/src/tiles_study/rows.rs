//! Runs to the rows that are scored.

use std::collections::BTreeMap;

use virtbench_record::{Status, TileRow, TilesPlan, TilesRecord};

use super::breaches::{NO_MEMBER, breaches};
use super::infrastructure::infrastructure_rows;

/// A row for each member of each tile of every run that counts, and for each operation of its infrastructure load. A run that failed has one row, of the member that ended, which
/// has not kept its levels.
#[must_use]
pub fn tile_rows(plan: &TilesPlan, records: &[TilesRecord]) -> Vec<TileRow> {
    let references = references(plan, records);
    let mut rows = Vec::new();
    for record in records.iter().filter(|record| record.void().is_none()) {
        let row = |tile: u32, member: &str, done: Option<[f64; 2]>, held: bool| TileRow {
            configuration: plan.configuration().to_owned(),
            repetition: record.key.repetition,
            tiles: record.key.tiles,
            tile,
            member: member.to_owned(),
            done,
            held: Some(held),
        };
        match &record.status {
            Status::Failed { detail, .. } => {
                let member = detail.member.as_deref().unwrap_or(NO_MEMBER);
                rows.push(row(detail.tile.unwrap_or(1), member, None, false));
            }
            Status::Unavailable { .. } | Status::Incomplete { .. } => {
                rows.push(row(1, NO_MEMBER, None, false));
            }
            Status::Measured(measured) => {
                let broken = breaches(plan, record);
                for one in &measured.members {
                    let held =
                        !broken.iter().any(|breach| breach.tile == one.tile && breach.member == one.member);
                    let reference = references.get(one.member.as_str()).copied();
                    // A member that did nothing has no ratio, and the score 0.
                    let done = one.done.as_ref();
                    let done = done.map(|done| [done.per_second, reference.unwrap_or(0.0)]);
                    rows.push(row(one.tile, &one.member, done, held));
                }
                rows.extend(infrastructure_rows(plan, record));
            }
        }
    }
    rows
}

/// What each member is held against: what the plan says, or the mean of what it did with the fewest tiles that were measured.
fn references<'a>(plan: &'a TilesPlan, records: &[TilesRecord]) -> BTreeMap<&'a str, f64> {
    let counts = || records.iter().filter(|record| record.void().is_none() && record.measured().is_some());
    let fewest = counts().map(|record| record.key.tiles).min();
    let measured = |name: &str| {
        let members = counts()
            .filter(|record| Some(record.key.tiles) == fewest)
            .filter_map(TilesRecord::measured)
            .flat_map(|measured| &measured.members);
        let rates: Vec<f64> = members
            .filter(|one| one.member == name)
            .filter_map(|one| Some(one.done.as_ref()?.per_second))
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        Some(mean).filter(|mean| *mean > 0.0)
    };
    plan.members
        .iter()
        .filter_map(|member| {
            Some((member.name.as_str(), member.reference.or_else(|| measured(&member.name))?))
        })
        .collect()
}
