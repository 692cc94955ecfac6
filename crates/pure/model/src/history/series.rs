//! Comparable runs in the order of time, and each of their measures as a series.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::{Better, PointKey};

use super::change_points::change_points;
use super::measures::subject;
use super::newest::{LEAST_BEFORE, Newest, newest};
use super::run::{Comparable, Copied, HistoryRun, Split, groups, splits, without_copies};
use crate::before_after::BetweenRuns;
use crate::host_load::{Busier, LoadSample, busier};
use crate::interval::{Span, median};
use crate::pairwise::Margin;
use crate::quantity::{Direction, Quantity, is_worst};

/// The probability with which comparable runs that never changed are said to have changed anywhere: once for their headlines
/// together, once for all the rest together.
pub const FALSE_ALARMS: f64 = 0.05;

/// The probability with which the newest of such runs is said to be worse, at each look: once for its headlines together, once for all
/// the rest together.
pub const FALSE_ALARMS_OF_NEWEST: f64 = 0.01;

/// Fewer comparable runs than this have no newest that can be judged.
pub const FEWEST_RUNS: usize = LEAST_BEFORE + 1;

/// How many times as bad what completed nothing is taken to be, at least, as the worst that completed anything.
const FARTHER: f64 = 10.0;

/// A change in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// Index, among the group's runs, of the first run after it.
    pub run: usize,
    /// Median of the runs before it, back to the last change beyond the margin or the beginning: up to the next change.
    pub before: f64,
    /// Median of the runs after it, up to the next change or the end.
    pub after: f64,
    /// How probable so large a difference is by chance.
    pub probability: f64,
    /// What follows; equivalent where the medians are within the margin.
    pub direction: Direction,
    /// What else the host was busier with before it or after it, which may be all there is to it.
    pub busier: Option<Busier>,
    /// Versions that differ between the last run before it and the first after it: name, before, after.
    pub versions: Vec<[String; 3]>,
}

/// A measure, run after run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Where it was measured.
    pub subject: String,
    /// What was measured.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Whether it sums up a run.
    pub headline: bool,
    /// Indices of the group's runs that have it, and their values, in the order of time.
    pub values: Vec<(usize, f64)>,
    /// Where it changed.
    pub changes: Vec<Changed>,
    /// The newest runs, where they are worse than those before them since the last change.
    pub newest: Option<Newest>,
    /// What else the host was busier with in these newest runs or before, which may be all there is to it.
    pub newest_busier: Option<Busier>,
}

/// Comparable runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryGroup {
    /// Which study.
    pub study: String,
    /// The host.
    pub host: String,
    /// The runs, in the order of time.
    pub runs: Vec<HistoryRun>,
    /// Their measures, headlines first.
    pub series: Vec<Series>,
}

/// Everything that a set of runs comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// Comparable runs, the most numerous first.
    pub groups: Vec<HistoryGroup>,
    /// Why they are not one group.
    pub splits: Vec<Split>,
    /// Parts in which runs differ that are compared all the same, because somebody wants that.
    pub joined: Vec<String>,
    /// Folders that are left out.
    pub copies: Vec<Copied>,
    /// What could not be judged, each in words.
    pub undecided: Vec<String>,
}

impl Series {
    /// Changes that are larger than the margin.
    pub fn larger_changes(&self) -> impl Iterator<Item = &Changed> {
        self.changes.iter().filter(|change| change.direction != Direction::Equivalent)
    }

    /// Whether it is worse since its last change, or in the newest runs, and the host was not busier.
    #[must_use]
    pub fn is_worse_now(&self) -> bool {
        self.is_newest_worse() || self.last_worse().is_some_and(|change| change.busier.is_none())
    }

    /// The last change, if it was for the worse.
    fn last_worse(&self) -> Option<&Changed> {
        self.larger_changes().last().filter(|change| change.direction == Direction::Worse)
    }

    /// Whether the newest runs are worse, and the host was not busier. One that completed nothing is worse whatever the host did.
    #[must_use]
    pub fn is_newest_worse(&self) -> bool {
        let stopped = |newest: &Newest| is_worst(newest.after, self.better);
        self.newest.as_ref().is_some_and(|newest| self.newest_busier.is_none() || stopped(newest))
    }

    /// Why it cannot be told whether it is worse, though it looks so.
    #[must_use]
    pub fn busier(&self) -> Option<&Busier> {
        if self.is_worse_now() {
            return None;
        }
        let of_change = self.last_worse().and_then(|change| change.busier.as_ref());
        self.newest.as_ref().and(self.newest_busier.as_ref()).or(of_change)
    }
}

impl HistoryGroup {
    /// Every change beyond the margin, with its series, the latest first.
    #[must_use]
    pub fn changes(&self) -> Vec<(&Series, &Changed)> {
        let all = self.series.iter();
        let mut changes: Vec<_> =
            all.flat_map(|series| series.larger_changes().map(move |change| (series, change))).collect();
        changes.sort_by_key(|(series, change)| (std::cmp::Reverse(change.run), !series.headline));
        changes
    }
}

impl History {
    /// Whether a headline is worse since its last change, or in the newest run.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        let all = self.groups.iter().flat_map(|group| &group.series);
        all.filter(|series| series.headline).any(Series::is_worse_now)
    }

    /// Whether the newest run was judged: it has enough comparable runs before it, and headlines that they have too.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.newest_group().is_some_and(|group| {
            let newest = group.runs.len() - 1;
            let is_known = |series: &Series| {
                series.values.len() >= FEWEST_RUNS
                    && series.values.last().is_some_and(|(run, _)| *run == newest)
            };
            group.series.iter().filter(|series| series.headline).any(is_known) || self.is_regression()
        })
    }

    /// Whether a headline looks worse on a host that was busier, and on no other.
    #[must_use]
    pub fn is_not_comparable(&self) -> bool {
        let all = self.groups.iter().flat_map(|group| &group.series);
        all.filter(|series| series.headline).any(|series| series.busier().is_some())
    }

    /// The group with the newest run of all.
    #[must_use]
    pub fn newest_group(&self) -> Option<&HistoryGroup> {
        self.groups.iter().max_by_key(|group| group.runs.last().map(|run| (run.started_unix_s, &run.folder)))
    }
}

/// Puts comparable runs together and looks for changes in each of their measures. Runs are comparable that have the same parts, but for
/// those whose names are `joined`. `seed` determines the permutations.
#[must_use]
pub fn history(runs: Vec<HistoryRun>, margin: Margin, joined: &[String], seed: u64) -> History {
    let (runs, copies) = without_copies(runs);
    let comparable = groups(runs, joined);
    let splits = splits(&comparable, joined);
    let groups = comparable.into_iter().map(|runs: Comparable| {
        let series = all_series(&runs, margin, seed);
        HistoryGroup { study: runs[0].study.clone(), host: runs[0].host.clone(), runs, series }
    });
    let mut history = History {
        margin: margin.share(),
        groups: groups.collect(),
        splits,
        joined: joined.to_vec(),
        copies,
        undecided: Vec::new(),
    };
    history.undecided = undecided(&history);
    history
}

fn undecided(history: &History) -> Vec<String> {
    let Some(group) = history.newest_group() else { return vec!["there are no runs".into()] };
    let mut reasons = Vec::new();
    let newest = group.runs.len() - 1;
    if newest < LEAST_BEFORE {
        let before =
            if newest == 1 { "1 comparable run".to_owned() } else { format!("{newest} comparable runs") };
        reasons.push(format!(
            "the newest run, {}, has {before} before it, and can be judged from {LEAST_BEFORE} on",
            group.runs[newest].folder
        ));
    }
    let lacks = group.series.iter().filter(|series| {
        // What a run had now and then is not missed.
        let is_usual = 2 * series.values.len() > newest;
        series.headline && is_usual && series.values.last().is_some_and(|(run, _)| *run < newest)
    });
    let lacks: Vec<String> =
        lacks.map(|series| format!("{} of {}", series.quantity, series.subject)).collect();
    if !lacks.is_empty() {
        reasons.push(format!(
            "the newest run, {}, has no {}",
            group.runs[newest].folder,
            lacks.join(", no ")
        ));
    }
    for series in history.groups.iter().flat_map(|group| &group.series).filter(|series| series.headline) {
        if let Some(busier) = series.busier() {
            reasons.push(format!("{}, {}: {}", series.subject, series.quantity, busier.words()));
        }
    }
    reasons
}

fn all_series(runs: &[HistoryRun], margin: Margin, seed: u64) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (run, measures) in runs.iter().map(|run| &run.measures).enumerate() {
        for measure in measures {
            let place =
                *places.entry((measure.subject.clone(), measure.quantity.clone())).or_insert_with(|| {
                    series.push(Series {
                        subject: measure.subject.clone(),
                        quantity: measure.quantity.clone(),
                        unit: measure.unit.clone(),
                        better: measure.better,
                        headline: measure.headline,
                        values: Vec::new(),
                        changes: Vec::new(),
                        newest: None,
                        newest_busier: None,
                    });
                    series.len() - 1
                });
            series[place].values.push((run, measure.value));
        }
    }
    for headline in [true, false] {
        let family = series.iter().filter(|one| one.headline == headline).count();
        let family = family.max(1) as f64;
        for (index, one) in series.iter_mut().enumerate().filter(|(_, one)| one.headline == headline) {
            one.changes = changes(one, runs, FALSE_ALARMS / family, margin, seed.wrapping_add(index as u64));
            judge_newest(one, runs, FALSE_ALARMS_OF_NEWEST / family, margin);
        }
    }
    series.sort_by_key(|one| !one.headline);
    series
}

/// Judges the newest runs by those since the last change. A measure that the newest run lacks is not judged by older ones.
fn judge_newest(series: &mut Series, runs: &[HistoryRun], level: f64, margin: Margin) {
    let last_change = series.changes.last().map_or(0, |change| change.run);
    let since: Vec<(usize, f64)> =
        series.values.iter().copied().filter(|(run, _)| *run >= last_change).collect();
    if since.last().is_none_or(|(run, _)| run + 1 < runs.len()) {
        return;
    }
    let values: Vec<f64> = since.iter().map(|(_, value)| *value).collect();
    series.newest = newest(&values, series.better, margin, level);
    if let Some(found) = &series.newest {
        let (before, after) = since.split_at(since.len() - found.runs);
        series.newest_busier = busier_runs(runs, before, after);
    }
}

/// What else the hosts of some runs were busier with than those of others.
fn busier_runs(runs: &[HistoryRun], before: &[(usize, f64)], after: &[(usize, f64)]) -> Option<Busier> {
    let loads = |side: &[(usize, f64)]| -> Vec<LoadSample> {
        side.iter().filter_map(|(run, _)| runs[*run].load).collect()
    };
    busier([&loads(before), &loads(after)])
}

fn changes(series: &Series, runs: &[HistoryRun], level: f64, margin: Margin, seed: u64) -> Vec<Changed> {
    let found = change_points(&logarithms(series), level, seed);
    let ends: Vec<usize> = found.iter().map(|change| change.index).chain([series.values.len()]).collect();
    let middle = |begin: usize, end: usize| {
        median(series.values[begin..end].iter().map(|(_, value)| *value)).unwrap_or(f64::NAN)
    };
    let finding = |before: f64, after: f64| {
        let ratio = after / before;
        margin.finding(Span { low: ratio, high: ratio })
    };
    // What a change is held against: the level from which it last went by more than the margin. Small steps add up.
    let (mut begin, mut level) = (0, None);
    let changes = found.iter().zip(ends.iter().skip(1)).map(|(change, end)| {
        let before = level.unwrap_or_else(|| middle(begin, change.index));
        let after = middle(change.index, *end);
        let direction = Direction::of(finding(before, after), series.better);
        level = Some(if direction == Direction::Equivalent { before } else { after });
        let sides = (&series.values[begin..change.index], &series.values[change.index..*end]);
        let busier = busier_runs(runs, sides.0, sides.1);
        begin = change.index;
        let (last, first) = (series.values[change.index - 1].0, series.values[change.index].0);
        let versions = different_versions(&runs[last], &runs[first]);
        Changed { run: first, before, after, probability: change.probability, direction, busier, versions }
    });
    changes.collect()
}

/// The values' logarithms. What completed nothing lies beyond the worst that completed anything, by as much as those differ, or a factor of
/// [`FARTHER`].
fn logarithms(series: &Series) -> Vec<f64> {
    let is_alive = |value: &f64| !is_worst(*value, series.better) && *value > 0.0;
    let alive = series.values.iter().map(|(_, value)| *value).filter(is_alive).map(f64::ln);
    let (least, most) =
        alive.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), one| (least.min(one), most.max(one)));
    if least > most {
        return vec![0.0; series.values.len()];
    }
    let farther = (most - least).max(FARTHER.ln());
    let beyond = |value: f64| if value > 0.0 { most + farther } else { least - farther };
    let place = |(_, value): &(usize, f64)| if is_alive(value) { value.ln() } else { beyond(*value) };
    series.values.iter().map(place).collect()
}

fn different_versions(before: &HistoryRun, after: &HistoryRun) -> Vec<[String; 3]> {
    let names = before
        .versions
        .keys()
        .chain(after.versions.keys().filter(|name| !before.versions.contains_key(*name)));
    let value =
        |run: &HistoryRun, name: &str| run.versions.get(name).cloned().unwrap_or_else(|| "none".into());
    names
        .map(|name| [name.clone(), value(before, name), value(after, name)])
        .filter(|[_, before, after]| before != after)
        .collect()
}

/// The fewest runs that tell of a spread.
pub const LEAST_RUNS: usize = 3;

/// The level at which a change of a measure is taken out of its spread.
const LEVEL: f64 = 0.05;

/// The spread of these runs, in the order of time, around their levels: where a measure has changed, around the level of its time.
/// Nothing of too few runs.
#[must_use]
pub fn between_runs(
    runs: &[&HistoryRun],
    environments: &[String],
    points: &[PointKey],
    seed: u64,
) -> Option<BetweenRuns> {
    let mut spreads = BTreeMap::new();
    let all = points.iter().copied().map(Some).chain([None]);
    let keys = environments.iter().flat_map(|name| all.clone().map(move |point| (name, point)));
    for (name, point) in keys {
        let subject = subject(name, point);
        for quantity in Quantity::ALL {
            let of_run = |run: &&HistoryRun| {
                let mut measures = run.measures.iter();
                let found = measures.find(|one| one.subject == subject && one.quantity == quantity.name());
                found.map(|measure| measure.value)
            };
            let values: Vec<f64> =
                runs.iter().filter_map(of_run).filter(|value| !is_worst(*value, quantity.better())).collect();
            if let Some(spread) = spread(&values, seed) {
                spreads.insert((name.clone(), point, quantity), spread);
            }
        }
    }
    (!spreads.is_empty()).then_some(BetweenRuns { runs: runs.len(), spreads })
}

/// The variance of logarithms around their levels, and its degrees of freedom.
fn spread(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    if values.len() < LEAST_RUNS {
        return None;
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let changes = change_points(&logarithms, LEVEL, seed);
    let ends: Vec<usize> = changes.iter().map(|change| change.index).chain([values.len()]).collect();
    let (mut squares, mut begin) = (0.0, 0);
    for end in &ends {
        let level = &logarithms[begin..*end];
        let mean = level.iter().sum::<f64>() / level.len() as f64;
        squares += level.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        begin = *end;
    }
    let freedom = values.len() as f64 - ends.len() as f64;
    (freedom > 0.0).then(|| (squares / freedom, freedom))
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
