//! How many tiles fit, and what they score ([Platform 2014], III.B): metrics are normalised by a reference system, a tile's
//! score is the geometric mean of its members', and the total is the sum over tiles. A member that breaks its service levels
//! fails the run with that many tiles.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{
    Conclusion, INFRASTRUCTURE, TileChangeNumbers, TileMemberNumbers, TileRow, TileSideNumbers,
    TileStepNumbers, TilesSummary,
};

use crate::interval::{CONFIDENCE, Estimate, FigureKind};
use crate::ratio::{Ratio, paired_ratio};
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

/// What a member did in each run, by the run's number: the geometric mean over tiles, as a share of the reference system.
type ByRun = BTreeMap<u32, f64>;

/// A member at one number of tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileMember {
    /// Its name.
    pub name: String,
    /// What it did as a share of the reference system, geometric mean over tiles; nothing where it is not scored.
    pub normalised: Option<Estimate>,
    /// What is left of what it does with one tile: normalised reduced throughput (Georges and Eeckhout, "Performance Metrics
    /// for Consolidated Servers", HPCVirt 2010). Nothing where one tile was not measured.
    pub of_one_tile: Option<Ratio>,
    /// Times that it broke its service levels, over all tiles and runs.
    pub broken: u32,
    /// Whether it is a management operation of the infrastructure load, and no member of a tile.
    pub infrastructure: bool,
    by_run: ByRun,
}

/// One number of tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileStep {
    /// Tiles at once.
    pub tiles: u32,
    /// Runs with them.
    pub runs: u32,
    /// Runs in which no member is known to have broken its levels.
    pub held: u32,
    /// Whether it is known of every row that its levels were kept or broken.
    pub levels_known: bool,
    /// Whose figures a run lacks, in words: it has no score.
    pub missing: Vec<String>,
    /// The sum of the tiles' scores, over runs.
    pub sum: Option<Estimate>,
    /// The score of the infrastructure load, over runs; nothing where there was none.
    pub infrastructure: Option<Estimate>,
    /// The sum, weighed with the infrastructure load where there was one.
    pub total: Option<Estimate>,
    /// Jain's index of fairness of what members have left.
    pub jain: Option<f64>,
    /// The members, in the order of the rows.
    pub members: Vec<TileMember>,
    sums: ByRun,
    totals: ByRun,
}

impl TileStep {
    /// Whether there are tiles and all runs kept all levels, as far as they are known.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.tiles > 0 && self.runs > 0 && self.held == self.runs
    }

    /// The score, which a broken level voids.
    #[must_use]
    pub fn score(&self) -> Option<Estimate> {
        self.total.filter(|_| self.fits())
    }

    /// The member that broke its levels most often; of equals the first.
    #[must_use]
    pub fn weakest(&self) -> Option<&TileMember> {
        let broken = self.members.iter().filter(|member| member.broken > 0);
        // Of equals `max_by_key` returns the last.
        broken.rev().max_by_key(|member| member.broken)
    }
}

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct TileConfiguration {
    /// Its name.
    pub name: String,
    /// Every number of tiles, ascending.
    pub steps: Vec<TileStep>,
}

impl TileConfiguration {
    /// The most tiles that fit: the last number before the first that does not.
    #[must_use]
    pub fn most(&self) -> Option<&TileStep> {
        self.steps.iter().take_while(|step| step.fits()).last()
    }

    /// The least number of tiles that does not fit.
    #[must_use]
    pub fn too_many(&self) -> Option<&TileStep> {
        self.steps.iter().find(|step| !step.fits())
    }

    /// The share of runs with the most tiles that hold at least, with 95 % confidence.
    #[must_use]
    pub fn holds_at_least(&self) -> Option<f64> {
        at_least_share(self.most()?.runs)
    }
}

/// A configuration against the first one with as many tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileChange {
    /// Which configuration.
    pub configuration: usize,
    /// Tiles on both.
    pub tiles: u32,
    /// The totals as a ratio, from runs of the same number; the sums of the tiles' scores where only one of the two has an
    /// infrastructure load.
    pub sum: Ratio,
    /// Every member's ratio, the one that moved most first.
    pub members: Vec<(String, Ratio)>,
}

/// All but the first against it.
fn changes(configurations: &[TileConfiguration], seed: u64) -> Vec<TileChange> {
    let Some((reference, others)) = configurations.split_first() else { return Vec::new() };
    let pairs = others.iter().enumerate().flat_map(|(index, other)| {
        let both = other.steps.iter().filter_map(|after| {
            Some((reference.steps.iter().find(|before| before.tiles == after.tiles)?, after))
        });
        both.map(move |(before, after)| (index + 1, before, after))
    });
    pairs.filter_map(|(index, before, after)| change(index, before, after, seed)).collect()
}

fn change(configuration: usize, before: &TileStep, after: &TileStep, seed: u64) -> Option<TileChange> {
    // Totals of different parts are not compared.
    let is_alike = before.infrastructure.is_some() == after.infrastructure.is_some();
    let scores = |step: &TileStep| if is_alike { step.totals.clone() } else { step.sums.clone() };
    let sum = paired_ratio(&scores(before), &scores(after), seed)?;
    let both = after.members.iter().filter_map(|member| {
        let is_same =
            |other: &&TileMember| other.name == member.name && other.infrastructure == member.infrastructure;
        let other = before.members.iter().find(is_same)?;
        Some((member.name.clone(), paired_ratio(&other.by_run, &member.by_run, seed)?))
    });
    let mut members: Vec<(String, Ratio)> = both.collect();
    let moved = |ratio: &Ratio| ratio.value.ln().abs();
    members.sort_by(|(_, a), (_, b)| moved(b).total_cmp(&moved(a)));
    Some(TileChange { configuration, tiles: after.tiles, sum, members })
}

/// What applications weigh in a total with an infrastructure load, which has the rest (VMmark 3's rules).
pub const APPLICATIONS_WEIGHT: f64 = 0.8;

/// The total of a run: the sum of its tiles' scores, with an infrastructure load 80 % of that and 20 % of the load's score.
#[must_use]
pub fn total_score(applications: f64, infrastructure: Option<f64>) -> f64 {
    infrastructure.map_or(applications, |infrastructure| {
        APPLICATIONS_WEIGHT * applications + (1.0 - APPLICATIONS_WEIGHT) * infrastructure
    })
}

/// What a member did as a share of the reference system. Who did nothing has nothing of any reference; nothing where the reference is
/// zero and the member did something.
pub(crate) fn share_of_reference([value, reference]: [f64; 2]) -> Option<f64> {
    let share = if value == 0.0 { 0.0 } else { value / reference };
    (share.is_finite() && share >= 0.0).then_some(share)
}

/// The score of a tile: the geometric mean of what its members did as shares of the reference system. Nothing without
/// members; zero where one did nothing.
#[must_use]
pub fn tile_score(normalised: &[f64]) -> Option<f64> {
    if normalised.is_empty() || normalised.iter().any(|one| !one.is_finite() || *one < 0.0) {
        return None;
    }
    let logarithms: f64 = normalised.iter().map(|one| one.ln()).sum();
    Some((logarithms / normalised.len() as f64).exp())
}

/// The share of runs that hold at least, with 95 % confidence, where all of `runs` did: the one-sided bound of Clopper and
/// Pearson ("The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26, 1934). Nothing
/// without a run.
#[must_use]
pub fn at_least_share(runs: u32) -> Option<f64> {
    (runs > 0).then(|| (1.0 - CONFIDENCE).powf(1.0 / f64::from(runs)))
}

/// The numbers of tiles that come to this conclusion.
#[must_use]
pub fn summarise_tiles(conclusion: Conclusion, analysis: &TilesAnalysis) -> TilesSummary {
    let name = |index: usize| analysis.configurations[index].name.clone();
    let changes = analysis.changes.iter().map(|change| TileChangeNumbers {
        configuration: name(change.configuration),
        reference: name(0),
        tiles: change.tiles,
        sum: change.sum.into(),
        members: change.members.iter().map(|(member, ratio)| (member.clone(), (*ratio).into())).collect(),
    });
    TilesSummary {
        conclusion,
        configurations: analysis.configurations.iter().map(configuration_numbers).collect(),
        changes: changes.collect(),
    }
}

fn configuration_numbers(one: &TileConfiguration) -> TileSideNumbers {
    TileSideNumbers {
        configuration: one.name.clone(),
        fits: one.most().map(|step| step.tiles),
        too_many: one.too_many().map(|step| step.tiles),
        holds_at_least_percent: one.holds_at_least().map(|share| 100.0 * share),
        steps: one.steps.iter().map(step_numbers).collect(),
    }
}

fn step_numbers(one: &TileStep) -> TileStepNumbers {
    TileStepNumbers {
        tiles: one.tiles,
        runs: one.runs,
        held: one.held,
        score: one.score().map(Into::into),
        sum: one.sum.map(Into::into),
        infrastructure: one.infrastructure.map(Into::into),
        total: one.total.map(Into::into),
        jain: one.jain,
        members: one.members.iter().map(member_numbers).collect(),
    }
}

fn member_numbers(one: &TileMember) -> TileMemberNumbers {
    TileMemberNumbers {
        member: one.name.clone(),
        normalised: one.normalised.map(Into::into),
        of_one_tile: one.of_one_tile.map(Into::into),
        broken: one.broken,
        infrastructure: one.infrastructure,
    }
}

#[cfg(test)]
#[path = "tiles_tests.rs"]
mod tiles_tests;
