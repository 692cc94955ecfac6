//! How many tiles to try next: decided without measuring, from what the run folder holds.

use std::collections::BTreeSet;

use virtbench_record::{TileNumbers, TilesPlan, TilesRecord};

use super::breaches::breaches;
use crate::knee::{Bracket, Course, Numbers};

/// A run that does not count is tried once more.
const TRIES: usize = 2;

/// The next number of tiles and which repetition it is; nothing once everything is there. Of a search: doubled until a service
/// level breaks, then halved in between until two neighbours are known. One broken level settles a number: it is not repeated.
#[must_use]
pub fn next_tiles(plan: &TilesPlan, records: &[TilesRecord]) -> Option<(u32, u32)> {
    course(plan, records, &|course| course.next())
}

/// How many runs are left at most, if all of them count. Nobody knows of a search that has not gone too far yet.
#[must_use]
pub fn tiles_left(plan: &TilesPlan, records: &[TilesRecord]) -> Option<u64> {
    course(plan, records, &|course| course.left())
}

fn course<T>(plan: &TilesPlan, records: &[TilesRecord], ask: &dyn Fn(&Course<'_>) -> T) -> T {
    let is_there = |number: u32, repetition: u32| is_settled(records, number, repetition);
    let bracket = || bracket(plan, records);
    let numbers = match &plan.tiles {
        TileNumbers::Given(numbers) => Numbers::Given(numbers),
        TileNumbers::Auto { most } => {
            Numbers::Search { most: *most, tried: open(plan, records), bracket: &bracket }
        }
    };
    ask(&Course { numbers, repetitions: plan.repetitions, is_there: &is_there })
}

fn is_broken(plan: &TilesPlan, records: &[TilesRecord], number: u32) -> bool {
    records.iter().any(|record| record.key.tiles == number && !breaches(plan, record).is_empty())
}

/// Numbers that were tried and not broken.
fn open(plan: &TilesPlan, records: &[TilesRecord]) -> BTreeSet<u32> {
    let tried = records.iter().map(|record| record.key.tiles);
    tried.filter(|number| !is_broken(plan, records, *number)).collect()
}

/// Of runs that do not count nothing is known, and nothing larger is tried.
fn bracket(plan: &TilesPlan, records: &[TilesRecord]) -> Bracket {
    let tried: BTreeSet<u32> = records.iter().map(|record| record.key.tiles).collect();
    let fits = |number: &&u32| {
        let counts = records.iter().any(|record| record.key.tiles == **number && record.void().is_none());
        counts && !is_broken(plan, records, **number)
    };
    Bracket {
        fits: tried.iter().take_while(fits).last().copied().unwrap_or(0),
        too_many: tried.iter().find(|number| !fits(number)).copied(),
    }
}

/// Whether there is a run that counts, or as many tries as there may be.
fn is_settled(records: &[TilesRecord], number: u32, repetition: u32) -> bool {
    let own =
        || records.iter().filter(|record| record.key.tiles == number && record.key.repetition == repetition);
    own().any(|record| record.void().is_none()) || own().count() >= TRIES
}
