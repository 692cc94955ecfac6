//! Rows of members to scores, and the most tiles that fit.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{INFRASTRUCTURE, TileRow};

use super::changes::{TileChange, changes};
use super::configuration::{ByRun, TileConfiguration, TileMember, TileStep};
use super::score::{share_of_reference, tile_score, total_score};
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
    let members = scored_members(rows);
    let configurations: Vec<TileConfiguration> = names
        .into_iter()
        .map(|name| {
            let own: Vec<&TileRow> = rows.iter().filter(|row| row.configuration == name).collect();
            configuration(name, &own, &members, seed)
        })
        .collect();
    TilesAnalysis { changes: changes(&configurations, seed), configurations }
}

fn configuration(name: &str, rows: &[&TileRow], members: &BTreeSet<&str>, seed: u64) -> TileConfiguration {
    let counts: BTreeSet<u32> = rows.iter().map(|row| row.tiles).collect();
    let operations = rows.iter().filter(|row| row.tile == INFRASTRUCTURE && row.done.is_some());
    let scored = Scored { members, operations: operations.map(|row| row.member.as_str()).collect() };
    let mut steps: Vec<TileStep> = Vec::new();
    for tiles in counts {
        let own: Vec<&TileRow> = rows.iter().copied().filter(|row| row.tiles == tiles).collect();
        let mut step = step(tiles, &own, &scored, seed);
        let first = steps.first().filter(|first| first.tiles == 1).cloned();
        compare_with_one(&mut step, first.as_ref(), seed);
        steps.push(step);
    }
    TileConfiguration { name: name.to_owned(), steps }
}

/// What needs a figure: members of tiles that have one on any configuration, and operations of the infrastructure load
/// that have one on this.
struct Scored<'a> {
    members: &'a BTreeSet<&'a str>,
    operations: BTreeSet<&'a str>,
}

fn scored_members(rows: &[TileRow]) -> BTreeSet<&str> {
    let members = rows.iter().filter(|row| row.tile != INFRASTRUCTURE && row.done.is_some());
    members.map(|row| row.member.as_str()).collect()
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

fn step(tiles: u32, rows: &[&TileRow], scored: &Scored<'_>, seed: u64) -> TileStep {
    let runs: BTreeSet<u32> = rows.iter().map(|row| row.repetition).collect();
    let held = runs
        .iter()
        .filter(|run| rows.iter().filter(|row| row.repetition == **run).all(|row| row.held != Some(false)));
    let of_run = |run: u32| rows.iter().copied().filter(|row| row.repetition == run).collect::<Vec<_>>();
    let sum = |run: &u32| Some((*run, sum_of_run(tiles, &of_run(*run), scored.members)?));
    let sums: ByRun = runs.iter().filter_map(sum).collect();
    let load = |run: &u32| Some((*run, infrastructure_of_run(&of_run(*run), &scored.operations)?));
    let infrastructure: ByRun = runs.iter().filter_map(load).collect();
    let totals: ByRun = if scored.operations.is_empty() {
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
        levels_known: rows.iter().filter(|row| row.done.is_some()).all(|row| row.held.is_some()),
        missing: missing(tiles, &runs, rows, scored),
        sum: over_runs(&sums, seed),
        infrastructure: over_runs(&infrastructure, seed),
        total: over_runs(&totals, seed),
        jain: None,
        members: names.into_iter().map(|name| member(name, rows, seed)).collect(),
        sums,
        totals,
    }
}

/// The sum of the tiles' scores of a run; nothing where a tile lacks a member that has a score elsewhere, or there is no tile.
fn sum_of_run(tiles: u32, rows: &[&TileRow], scored: &BTreeSet<&str>) -> Option<f64> {
    (tiles > 0).then_some(())?;
    (1..=tiles).map(|tile| tile_score(&shares(tile, rows, scored)?)).sum()
}

/// The score of a run's infrastructure load: the geometric mean over its operations, each as a share of what it was to do; nothing where
/// one of them is missing.
fn infrastructure_of_run(rows: &[&TileRow], scored: &BTreeSet<&str>) -> Option<f64> {
    tile_score(&shares(INFRASTRUCTURE, rows, scored)?)
}

/// What each of them did in a tile, as a share of its reference; nothing where one is missing.
fn shares(tile: u32, rows: &[&TileRow], scored: &BTreeSet<&str>) -> Option<Vec<f64>> {
    let of = |name: &&str| {
        let row = rows.iter().find(|row| row.tile == tile && row.member == *name)?;
        share_of_reference(row.done?)
    };
    scored.iter().map(of).collect()
}

/// Members without a figure in a run that have one in another: for each, in words. Runs in which a level broke have no score anyway.
fn missing(tiles: u32, runs: &BTreeSet<u32>, rows: &[&TileRow], scored: &Scored<'_>) -> Vec<String> {
    let mut missing = BTreeSet::new();
    for run in runs {
        let own: Vec<&TileRow> = rows.iter().copied().filter(|row| row.repetition == *run).collect();
        if own.iter().any(|row| row.held == Some(false)) {
            continue;
        }
        let lacks = |tile: u32, name: &str| shares(tile, &own, &BTreeSet::from([name])).is_none();
        for name in scored.members {
            let of_tile = |tile: u32| format!("{name} of tile {tile} in run {}", run + 1);
            missing.extend((1..=tiles).filter(|tile| lacks(*tile, name)).map(of_tile));
        }
        let operations = scored.operations.iter().filter(|name| lacks(INFRASTRUCTURE, name));
        missing.extend(operations.map(|name| format!("the operation {name} in run {}", run + 1)));
    }
    missing.into_iter().collect()
}

fn member((name, infrastructure): (&str, bool), rows: &[&TileRow], seed: u64) -> TileMember {
    let is_own = |row: &&&TileRow| row.member == name && (row.tile == INFRASTRUCTURE) == infrastructure;
    let own = || rows.iter().filter(is_own);
    let mut of_runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in own() {
        if let Some(share) = row.done.and_then(share_of_reference) {
            of_runs.entry(row.repetition).or_default().push(share);
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
