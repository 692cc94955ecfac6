//! What a study of tiles comes to.

use std::collections::BTreeSet;

use virtbench_record::{
    Conclusion, PowerSample, TileBreach, TileEnergy, TileHostNumbers, TileMemberPlan, TilePredicted,
    TilePredictionErrors, TileVoid, TilesMeasured, TilesPlan, TilesRecord, TilesStudySummary,
};

use super::breaches::{breaches, covers, tile_rows, together, too_few};
use super::predicted::{errors, predicted, unpredicted};
use crate::host_load::busy_host;
use crate::tiles::{TileConfiguration, TilesAnalysis, analyse_tiles, summarise_tiles};

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
    /// Every run that counts as it was predicted from its members by themselves; empty where these were not measured.
    pub predicted: Vec<TilePredicted>,
    /// How far that is off.
    pub prediction_errors: Option<TilePredictionErrors>,
    /// Why nothing was predicted, in words, where it was to be.
    pub unpredicted: Option<String>,
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
    let counts = || together(records).filter(|record| record.void().is_none());
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
    let void = together(records).filter_map(|record| {
        let why = record.void()?.to_vec();
        Some(TileVoid { tiles: record.key.tiles, repetition: record.key.repetition, why })
    });
    let predicted = predicted(plan, records);
    TilesStudyAnalysis {
        prediction_errors: errors(&predicted),
        unpredicted: unpredicted(plan, records).filter(|_| predicted.is_empty()),
        predicted,
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
    let counts =
        || together(records).filter(|record| record.void().is_none()).filter_map(TilesRecord::measured);
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

/// Processors that are busier are exhausted, in percent: little more can be had where work comes unevenly.
const BUSY_PERCENT: f64 = 92.0;

/// A single processor likewise; a member held to it cannot use another.
const ONE_BUSY_PERCENT: f64 = 96.0;

/// A hypervisor below that takes more away is what limits, in percent of all processors.
const STEAL_PERCENT: f64 = 5.0;

/// A disk that is busier is exhausted, in percent.
const DISK_PERCENT: f64 = 90.0;

/// A network interface that carries more of what its speed allows is exhausted, in percent.
const NETWORK_PERCENT: f64 = 90.0;

/// Less available memory is none, as a share of all.
const MEMORY_SHARE: f64 = 0.05;

/// The host with so many tiles, means over their runs; nothing of none.
pub(super) fn host_numbers(
    tiles: u32,
    runs: &[&TilesMeasured],
    score: Option<f64>,
) -> Option<TileHostNumbers> {
    // Ticks are counted coarsely, and may come out a little above all that there is.
    let busy = |run: &&TilesMeasured| (run.host.cpu_percent / processors(run)).min(100.0);
    let busy_percent = mean(runs.iter().map(busy))?;
    let steal_percent = mean(runs.iter().map(|run| run.host.steal_percent / processors(run)))?;
    let busiest = |run: &&TilesMeasured| {
        run.host.each_percent.iter().map(|percent| percent.min(100.0)).reduce(f64::max)
    };
    let seconds = || runs.iter().flat_map(|run| &run.seconds);
    let threads = runs.iter().flat_map(|run| &run.members).map(|member| member.network_thread_percent);
    let watts = mean(runs.iter().filter_map(|run| mean_watts(&run.energy, run.elapsed_ns)));
    let mut numbers = TileHostNumbers {
        tiles,
        busy_percent,
        busiest_processor_percent: mean(runs.iter().filter_map(busiest)),
        steal_percent,
        least_available_bytes: seconds().filter_map(|second| second.available_bytes).min(),
        disk_percent: mean(seconds().filter_map(|second| second.disk_percent)),
        network_percent: mean(seconds().filter_map(|second| second.network_percent)),
        network_thread_percent: threads.flatten().map(|percent| percent.min(100.0)).reduce(f64::max),
        exhausted: Vec::new(),
        watts,
        score_per_kilowatt: watts
            .filter(|watts| *watts > 0.0)
            .and_then(|watts| Some(1000.0 * score? / watts)),
    };
    numbers.exhausted = exhausted(&numbers, runs.iter().filter_map(|run| run.memory_bytes).max());
    Some(numbers)
}

fn processors(run: &TilesMeasured) -> f64 {
    f64::from(run.host.processors.max(1))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn exhausted(at: &TileHostNumbers, memory_bytes: Option<u64>) -> Vec<String> {
    let mut found = Vec::new();
    let busiest = at.busiest_processor_percent.filter(|percent| *percent >= ONE_BUSY_PERCENT);
    if at.busy_percent + at.steal_percent >= BUSY_PERCENT {
        found.push(format!("the processors, {:.0} % busy", at.busy_percent));
    } else if let Some(percent) = busiest {
        found.push(format!("one of the processors, {percent:.0} % busy"));
    }
    if at.steal_percent >= STEAL_PERCENT {
        found.push(format!(
            "the processors of the host below, which took away {:.0} % of this one's",
            at.steal_percent
        ));
    }
    if let Some(percent) = at.disk_percent.filter(|percent| *percent >= DISK_PERCENT) {
        found.push(format!("the disk of the data, {percent:.0} % busy"));
    }
    if let Some(percent) = at.network_percent.filter(|percent| *percent >= NETWORK_PERCENT) {
        found.push(format!("a network interface, at {percent:.0} % of its speed"));
    }
    if let Some(percent) = at.network_thread_percent.filter(|percent| *percent >= ONE_BUSY_PERCENT) {
        found.push(format!("the network of a VM, whose thread was {percent:.0} % busy"));
    }
    if let (Some(left), Some(all)) = (at.least_available_bytes, memory_bytes)
        && (left as f64) < MEMORY_SHARE * all as f64
    {
        found.push(format!("memory, of which {} MiB were left", left >> 20));
    }
    found
}

/// Mean power from nought to `elapsed_ns`, in watts: the integral by trapezoids over the time that samples cover, by that time.
/// Nothing where it was not read, or samples cover less than half of the time.
#[must_use]
pub fn mean_watts(energy: &TileEnergy, elapsed_ns: u64) -> Option<f64> {
    let TileEnergy::Read { samples, .. } = energy else { return None };
    let mut samples = samples.clone();
    samples.retain(|sample| sample.watts.is_finite() && sample.watts >= 0.0);
    samples.sort_by_key(|sample| sample.at_ns);
    let end_ns = i64::try_from(elapsed_ns).unwrap_or(i64::MAX);
    let (mut joules, mut covered) = (0.0, 0.0);
    for pair in samples.windows(2) {
        let (from, to) = (pair[0].at_ns.max(0), pair[1].at_ns.min(end_ns));
        if to > from {
            let seconds = (to - from) as f64 / 1e9;
            joules += (power_at(pair, from) + power_at(pair, to)) / 2.0 * seconds;
            covered += seconds;
        }
    }
    (covered > 0.0 && covered * 2e9 >= elapsed_ns as f64).then(|| joules / covered)
}

/// Power at a moment between two samples, on the line between them.
fn power_at(pair: &[PowerSample], at_ns: i64) -> f64 {
    let length = (pair[1].at_ns - pair[0].at_ns) as f64;
    let share = (at_ns - pair[0].at_ns) as f64 / length;
    pair[0].watts + (pair[1].watts - pair[0].watts) * share
}

/// The numbers of an analysis that comes to this conclusion.
#[must_use]
pub fn summarise_tiles_study(conclusion: Conclusion, analysis: &TilesStudyAnalysis) -> TilesStudySummary {
    let scored = summarise_tiles(Conclusion::default(), &analysis.scored);
    TilesStudySummary {
        conclusion,
        covers: analysis.covers.clone(),
        tiles: scored.configurations.into_iter().next(),
        breaches: analysis.breaches.clone(),
        broke_first: analysis.broke_first.clone(),
        first_in_time: analysis.first_in_time.clone(),
        host: analysis.host.clone(),
        energy_unavailable: analysis.energy_unavailable.clone(),
        void: analysis.void.clone(),
        predicted: analysis.predicted.clone(),
        prediction_errors: analysis.prediction_errors,
    }
}
