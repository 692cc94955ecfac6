//! Rows of members to scores, and the most tiles that fit.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{INFRASTRUCTURE, TileRow};

use super::changes::{TileChange, changes};
use super::configuration::{ByRun, TileConfiguration, TileMember, TileStep};
use super::score::{tile_score, total_score};
use crate::interval::Estimate;
use crate::kind::FigureKind;
use crate::ratio::paired_ratio;
use crate::together::jain;

/// Tiles on each configuration, the first one being the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct TilesAnalysis {
    /// In the order of the rows.
    pub configurations: Vec<TileConfiguration>,
    /// All but the first against it, wherever both have as many tiles.
    pub changes: Vec<TileChange>,
}

/// Scores tiles. `seed` determines the resampling.
#[must_use]
pub fn analyse_tiles(rows: &[TileRow], seed: u64) -> TilesAnalysis {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.configuration.as_str()) {
            names.push(&row.configuration);
        }
    }
    let configurations: Vec<TileConfiguration> = names
        .into_iter()
        .map(|name| {
            let own: Vec<&TileRow> = rows.iter().filter(|row| row.configuration == name).collect();
            configuration(name, &own, seed)
        })
        .collect();
    TilesAnalysis { changes: changes(&configurations, seed), configurations }
}

fn configuration(name: &str, rows: &[&TileRow], seed: u64) -> TileConfiguration {
    let counts: BTreeSet<u32> = rows.iter().map(|row| row.tiles).collect();
    let mut steps: Vec<TileStep> = Vec::new();
    for tiles in counts {
        let own: Vec<&TileRow> = rows.iter().copied().filter(|row| row.tiles == tiles).collect();
        let mut step = step(tiles, &own, seed);
        let first = steps.first().filter(|first| first.tiles == 1).cloned();
        compare_with_one(&mut step, first.as_ref(), seed);
        steps.push(step);
    }
    TileConfiguration { name: name.to_owned(), steps }
}

/// What is left to each member of what it does with one tile.
fn compare_with_one(step: &mut TileStep, one_tile: Option<&TileStep>, seed: u64) {
    let alone = one_tile.map_or_else(|| step.clone(), Clone::clone);
    if alone.tiles != 1 {
        return;
    }
    for member in &mut step.members {
        let before = alone
            .members
            .iter()
            .find(|before| before.name == member.name && before.infrastructure == member.infrastructure);
        member.of_one_tile = before.and_then(|before| paired_ratio(&before.by_run, &member.by_run, seed));
    }
    let members = step.members.iter().filter(|member| !member.infrastructure);
    let left: Vec<f64> = members.filter_map(|member| Some(member.of_one_tile?.value)).collect();
    step.jain = jain(&left);
}

fn step(tiles: u32, rows: &[&TileRow], seed: u64) -> TileStep {
    let runs: BTreeSet<u32> = rows.iter().map(|row| row.repetition).collect();
    let held = runs
        .iter()
        .filter(|run| rows.iter().filter(|row| row.repetition == **run).all(|row| row.held != Some(false)));
    let sums: ByRun = runs.iter().filter_map(|run| Some((*run, sum_of_run(tiles, *run, rows)?))).collect();
    let infrastructure: ByRun =
        runs.iter().filter_map(|run| Some((*run, infrastructure_of_run(*run, rows)?))).collect();
    let totals: ByRun = if infrastructure.is_empty() {
        sums.clone()
    } else {
        let both = sums.iter().filter_map(|(run, sum)| Some((*run, *sum, *infrastructure.get(run)?)));
        both.map(|(run, sum, load)| (run, total_score(sum, Some(load)))).collect()
    };
    let mut names: Vec<(&str, bool)> = Vec::new();
    for row in rows {
        let name = (row.member.as_str(), row.tile == INFRASTRUCTURE);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    TileStep {
        tiles,
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        held: u32::try_from(held.count()).unwrap_or(u32::MAX),
        sum: over_runs(&sums, seed),
        infrastructure: over_runs(&infrastructure, seed),
        total: over_runs(&totals, seed),
        jain: None,
        members: names.into_iter().map(|name| member(name, rows, seed)).collect(),
        sums,
        totals,
    }
}

/// The sum of the tiles' scores of a run; nothing where a tile has none.
fn sum_of_run(tiles: u32, run: u32, rows: &[&TileRow]) -> Option<f64> {
    let mut of_tiles: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.repetition == run && row.tile != INFRASTRUCTURE) {
        if let Some([value, reference]) = row.done {
            of_tiles.entry(row.tile).or_default().push(value / reference);
        }
    }
    (of_tiles.len() == tiles as usize).then_some(())?;
    of_tiles.values().map(|members| tile_score(members)).sum()
}

/// The score of a run's infrastructure load: the geometric mean over its operations, each as a share of what it was to do.
fn infrastructure_of_run(run: u32, rows: &[&TileRow]) -> Option<f64> {
    let own = rows.iter().filter(|row| row.repetition == run && row.tile == INFRASTRUCTURE);
    let done: Vec<f64> = own.filter_map(|row| row.done).map(|[value, reference]| value / reference).collect();
    tile_score(&done)
}

fn member((name, infrastructure): (&str, bool), rows: &[&TileRow], seed: u64) -> TileMember {
    let is_own = |row: &&&TileRow| row.member == name && (row.tile == INFRASTRUCTURE) == infrastructure;
    let own = || rows.iter().filter(is_own);
    let mut of_runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in own() {
        if let Some([value, reference]) = row.done {
            of_runs.entry(row.repetition).or_default().push(value / reference);
        }
    }
    let by_run: ByRun = of_runs.iter().filter_map(|(run, tiles)| Some((*run, tile_score(tiles)?))).collect();
    let broken = own().filter(|row| row.held == Some(false)).count();
    TileMember {
        name: name.to_owned(),
        normalised: over_runs(&by_run, seed),
        of_one_tile: None,
        broken: u32::try_from(broken).unwrap_or(u32::MAX),
        infrastructure,
        by_run,
    }
}

fn over_runs(values: &ByRun, seed: u64) -> Option<Estimate> {
    FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<_>>(), seed)
}
