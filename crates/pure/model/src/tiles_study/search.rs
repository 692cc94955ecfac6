//! How many tiles to try next: decided without measuring, from what the run folder holds.

use virtbench_record::{TileNumbers, TilesPlan, TilesRecord};

use super::breaches::breaches;

/// A run that does not count is tried once more.
const TRIES: usize = 2;

/// The next number of tiles and which repetition it is; nothing once everything is there. Of a search: doubled until a service
/// level breaks, then halved in between until two neighbours are known. One broken level settles a number: it is not repeated.
#[must_use]
pub fn next_tiles(plan: &TilesPlan, records: &[TilesRecord]) -> Option<(u32, u32)> {
    let missing = |number: u32| {
        let repetition = (0..plan.repetitions).find(|repetition| !is_settled(records, number, *repetition));
        repetition.map(|repetition| (number, repetition))
    };
    let most = match &plan.tiles {
        TileNumbers::Given(numbers) => return numbers.iter().find_map(|number| missing(*number)),
        TileNumbers::Auto { most } => *most,
    };
    let is_broken = |number: u32| {
        let mut own = records.iter().filter(|record| record.tiles == number);
        own.any(|record| !breaches(plan, record).is_empty())
    };
    let mut tried: Vec<u32> = records.iter().map(|record| record.tiles).collect();
    tried.sort_unstable();
    tried.dedup();
    let unfinished = tried.iter().filter(|number| !is_broken(**number)).find_map(|number| missing(*number));
    if unfinished.is_some() {
        return unfinished;
    }
    // Of runs that do not count nothing is known, and nothing larger is tried.
    let fits = |number: u32| {
        !is_broken(number) && records.iter().any(|record| record.tiles == number && record.void().is_none())
    };
    let broken = tried.iter().copied().find(|number| !fits(*number));
    let fit = tried.iter().copied().take_while(|number| fits(*number)).last().unwrap_or(0);
    match broken {
        None if fit >= most => None,
        None => missing((fit * 2).clamp(1, most)),
        Some(broken) if broken <= fit + 1 => None,
        Some(broken) => missing(fit.midpoint(broken)),
    }
}

/// Whether there is a run that counts, or as many tries as there may be.
fn is_settled(records: &[TilesRecord], number: u32, repetition: u32) -> bool {
    let own = || records.iter().filter(|record| record.tiles == number && record.repetition == repetition);
    own().any(|record| record.void().is_none()) || own().count() >= TRIES
}
