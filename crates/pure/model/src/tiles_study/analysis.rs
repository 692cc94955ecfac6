//! What a study of tiles comes to.

use std::collections::BTreeSet;

use virtbench_record::{
    TileBreach, TileEnergy, TileHostNumbers, TileMemberPlan, TileVoid, TilesMeasured, TilesPlan, TilesRecord,
};

use super::breaches::{breaches, too_few};
use super::host::host_numbers;
use super::infrastructure::covers;
use super::rows::tile_rows;
use crate::busy::busy_host;
use crate::tiles::{TileConfiguration, TilesAnalysis, analyse_tiles};

/// What a study of tiles comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct TilesStudyAnalysis {
    /// Scores, as of any table of tiles; one configuration, or none where nothing was measured.
    pub scored: TilesAnalysis,
    /// Every broken service level, as it was found.
    pub breaches: Vec<TileBreach>,
    /// The one that was broken farthest at the least number of tiles that does not fit.
    pub broke_first: Option<TileBreach>,
    /// The one that was first in time there, of those whose time is known.
    pub first_in_time: Option<TileBreach>,
    /// What the score covers, in words.
    pub covers: String,
    /// The host at every number of tiles, ascending.
    pub host: Vec<TileHostNumbers>,
    /// Why energy was not read, where it was not.
    pub energy_unavailable: Option<String>,
    /// Runs that do not count.
    pub void: Vec<TileVoid>,
    /// Members whose operations were too few for the percentile of their level, in words.
    pub few: Vec<String>,
    /// What other programs took of the host, in words, where it was much.
    pub others: Option<String>,
}

impl TilesStudyAnalysis {
    /// What was measured, if anything was.
    #[must_use]
    pub fn configuration(&self) -> Option<&TileConfiguration> {
        self.scored.configurations.first()
    }
}

/// Scores what was measured, and looks for what broke.
#[must_use]
pub fn analyse_tiles_study(plan: &TilesPlan, records: &[TilesRecord]) -> TilesStudyAnalysis {
    let scored = analyse_tiles(&tile_rows(plan, records), plan.seed);
    let breaches: Vec<TileBreach> = records.iter().flat_map(|record| breaches(plan, record)).collect();
    let too_many = scored.configurations.first().and_then(TileConfiguration::too_many);
    let at_fault =
        || breaches.iter().filter(|breach| too_many.is_some_and(|step| step.tiles == breach.tiles));
    let beyond = |breach: &TileBreach| breach.beyond.unwrap_or(f64::INFINITY);
    let timed = at_fault().filter(|breach| breach.since_ns.is_some());
    let first_in_time = timed.min_by_key(|breach| breach.since_ns).cloned();
    let broke_first = at_fault().max_by(|a, b| beyond(a).total_cmp(&beyond(b))).cloned();
    let counts = || records.iter().filter(|record| record.void().is_none());
    let numbers: BTreeSet<u32> = counts().map(|record| record.key.tiles).collect();
    let host = numbers.into_iter().filter_map(|tiles| {
        let runs: Vec<&TilesMeasured> =
            counts().filter(|record| record.key.tiles == tiles).filter_map(TilesRecord::measured).collect();
        let step = scored.configurations.first()?.steps.iter().find(|step| step.tiles == tiles);
        let mut numbers = host_numbers(tiles, &runs, step.and_then(|step| Some(step.score()?.mean)))?;
        if plan.is_elsewhere() {
            // This host has the generators alone: what it lacks is not what the tiles lack.
            numbers.exhausted.clear();
        }
        Some(numbers)
    });
    let host = host.collect();
    let unavailable = records.iter().filter_map(TilesRecord::measured).find_map(|run| match &run.energy {
        TileEnergy::Unavailable(why) => Some(why.clone()),
        TileEnergy::Read { .. } => None,
    });
    let void = records.iter().filter_map(|record| {
        let why = record.void()?.to_vec();
        Some(TileVoid { tiles: record.key.tiles, repetition: record.key.repetition, why })
    });
    TilesStudyAnalysis {
        few: few(plan, records),
        breaches,
        broke_first,
        first_in_time,
        covers: covers(plan),
        host,
        energy_unavailable: unavailable,
        void: void.collect(),
        others: busy_host(records.iter().filter_map(TilesRecord::measured).map(|run| &run.host))
            .map(|busy| busy.words()),
        scored,
    }
}

/// Of each member that was judged by too few operations the run with the fewest.
fn few(plan: &TilesPlan, records: &[TilesRecord]) -> Vec<String> {
    let counts = || records.iter().filter(|record| record.void().is_none()).filter_map(TilesRecord::measured);
    let of_member = |member: &TileMemberPlan| {
        let own = counts().flat_map(|measured| &measured.members).filter(|one| one.member == member.name);
        let fewest = own.filter_map(|one| too_few(&member.levels, one.done.as_ref()?)).min()?;
        let ([there, needed], percentile) = (fewest, member.levels.percentile);
        Some(format!(
            "{}: {there} operations are too few to judge {percentile} % ({needed} are needed), so the slowest was held against its level. \
             Measure longer.",
            member.name
        ))
    };
    plan.members.iter().filter_map(of_member).collect()
}
