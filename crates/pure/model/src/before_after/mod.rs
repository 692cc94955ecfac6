//! Did it get worse? Two runs of one plan, before a change and after it, at the points that both measured.
//!
//! ```text
//! repetitions of a point ------> ratio, better or worse        change: Welch; what completed nothing decides by itself
//! points of an environment ----> the same over all points      by runs where a side has several of them
//! runs of the past ------------> at least that wide            change
//! load of the hosts -----------> not comparable                crate::host_load
//! what was not observed -------> not judged                    compared
//! ```

mod change;
mod compared;

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointRecord, Provenance};

pub(crate) use self::change::LogRatio;
pub use self::change::{BetweenRuns, Change};
pub(crate) use self::compared::differences;
pub use self::compared::{BeforeAfter, ChangedEnvironment, ChangedPoint};
pub use crate::host_load::{Busier, Load};
pub use crate::quantity::{Direction, Quantity};

use self::change::Sides;
use self::compared::unjudged;
use crate::host_load::{LoadSample, busier};
use crate::interval::geometric_mean;
use crate::pairwise::{LEVEL, Margin};
use crate::quantity::is_worst;

/// One side of a comparison: a run, or several that repeat each other.
#[derive(Debug, Clone)]
pub struct RunSet<'a> {
    /// Of its first run.
    pub provenance: &'a Provenance,
    /// What each run measured.
    pub runs: Vec<&'a [PointRecord]>,
}

impl<'a> RunSet<'a> {
    /// A single run.
    #[must_use]
    pub fn one(provenance: &'a Provenance, records: &'a [PointRecord]) -> Self {
        Self { provenance, runs: vec![records] }
    }
}

/// Records of each point of each environment, run by run.
type Samples<'r> = BTreeMap<(&'r str, PointKey), Repetitions<'r>>;

/// Compares two sides at the points of the environments that both have. Repetitions of one side have no counterpart in the
/// other: they are pooled. `between` is how much comparable runs differ, where that is known.
#[must_use]
pub fn before_after(sides: [&RunSet<'_>; 2], margin: Margin, between: Option<&BetweenRuns>) -> BeforeAfter {
    let [old, new] = sides.map(samples);
    let common: Vec<(&str, PointKey)> = old.keys().filter(|key| new.contains_key(*key)).copied().collect();
    let planned = sides[0].provenance.plan.environments();
    let mut names: Vec<&str> = Vec::new();
    for name in planned.iter().map(String::as_str).chain(common.iter().map(|(name, _)| *name)) {
        if common.iter().any(|(other, _)| *other == name) && !names.contains(&name) {
            names.push(name);
        }
    }
    // Half of what may be false goes to the points, half to the environments.
    let adjusted = |number: usize| 1.0 - LEVEL / (number * Quantity::ALL.len()).max(1) as f64;
    let is_alternated = alternated(sides[0], sides[1]);
    // What runs of different days differ by does not part sides that were measured in turn.
    let between = between.filter(|_| !is_alternated);
    let rules = Rules {
        margin,
        careful: [adjusted(common.len()), adjusted(names.len())],
        between,
        alternated: is_alternated,
    };
    let environments = names.iter().map(|name| {
        let points = common.iter().filter(|(other, _)| other == name);
        let points: Vec<_> = points.map(|key| (key.1, [&old[key], &new[key]])).collect();
        changed_environment(name, &points, &rules)
    });
    let (unmatched_environments, unmatched_points) = unmatched(&old, &new);
    let mut compared = BeforeAfter {
        margin: margin.share(),
        differences: differences(sides[0].provenance, sides[1].provenance),
        alternated: is_alternated,
        runs: sides.map(|side| side.runs.len()),
        runs_of_the_past: between.map(|between| between.runs),
        same_run: !common.is_empty() && is_same_run(sides[0], sides[1]),
        environments: environments.collect(),
        unmatched_environments,
        unmatched_points,
        undecided: Vec::new(),
    };
    compared.undecided = unjudged(&compared);
    compared
}

/// Environments of one side only, and how many points of the others are.
fn unmatched(old: &Samples<'_>, new: &Samples<'_>) -> (Vec<String>, usize) {
    let has = |side: &Samples<'_>, name: &str| side.keys().any(|(other, _)| *other == name);
    let (mut names, mut points) = (Vec::<String>::new(), 0);
    for (side, other) in [(old, new), (new, old)] {
        for key in side.keys().filter(|key| !other.contains_key(*key)) {
            if has(other, key.0) {
                points += 1;
            } else if !names.iter().any(|name| name == key.0) {
                names.push(key.0.to_owned());
            }
        }
    }
    (names, points)
}

fn samples<'r>(side: &RunSet<'r>) -> Samples<'r> {
    let mut samples = Samples::new();
    for (index, run) in side.runs.iter().enumerate() {
        // What was stopped before it completed anything says nothing.
        for record in run.iter().filter(|record| Quantity::Throughput.value(record).is_some()) {
            let runs = samples
                .entry((record.environment.as_str(), record.point))
                .or_insert_with(|| vec![Vec::new(); side.runs.len()]);
            runs[index].push(record);
        }
    }
    samples
}

/// Whether both sides hold the same measurements, such as a folder and a copy of it.
fn is_same_run(before: &RunSet<'_>, after: &RunSet<'_>) -> bool {
    before.runs == after.runs
}

/// Whether each side began before the other had ended.
fn alternated(before: &RunSet<'_>, after: &RunSet<'_>) -> bool {
    let range = |side: &RunSet<'_>| {
        let times = || side.runs.iter().flat_map(|run| run.iter()).map(|record| record.started_unix_ns);
        Some((times().min()?, times().max()?))
    };
    match (range(before), range(after)) {
        (Some(before), Some(after)) => before.0 < after.1 && after.0 < before.1,
        _ => false,
    }
}

/// The measured records of an environment at a point, run by run.
type Repetitions<'r> = Vec<Vec<&'r PointRecord>>;

/// How environments are judged.
struct Rules<'a> {
    margin: Margin,
    /// Confidence that allows for how many points are looked at, and for how many environments.
    careful: [f64; 2],
    between: Option<&'a BetweenRuns>,
    /// Whether both sides were measured in turn: then they had the same host, whatever it did.
    alternated: bool,
}

/// Compares an environment at the points that both sides have.
fn changed_environment(
    name: &str,
    points: &[(PointKey, [&Repetitions<'_>; 2])],
    rules: &Rules<'_>,
) -> ChangedEnvironment {
    let mut changed: Vec<ChangedPoint> = Vec::new();
    let mut all: BTreeMap<Quantity, Vec<Sides>> = BTreeMap::new();
    for (point, sides) in points {
        let mut changes = Vec::new();
        for quantity in Quantity::ALL {
            let Some(found) = compared(name, *point, quantity, *sides, rules) else { continue };
            changes.push(Change::of_sides(quantity, &found, rules.margin, rules.careful[0]));
            all.entry(quantity).or_default().push(found);
        }
        let repetitions = sides.map(|side| side.iter().map(Vec::len).sum());
        changed.push(ChangedPoint { point: *point, repetitions, changes });
    }
    let overall = all.iter().filter_map(|(quantity, found)| overall(name, *quantity, found, points, rules));
    let mut environment = ChangedEnvironment {
        name: name.to_owned(),
        overall: overall.collect(),
        points: changed,
        busier: None,
    };
    if !rules.alternated {
        environment.busier = loads(points);
    }
    if environment.busier.is_some() {
        let of_points = environment.points.iter_mut().flat_map(|point| &mut point.changes);
        environment.overall.iter_mut().chain(of_points).for_each(|change| *change = change.withheld());
    }
    environment
}

/// The values of both sides at a point: of each repetition, or where both have several runs of each run, its mean. What differs from run to
/// run is in all repetitions of a run alike.
fn values(quantity: Quantity, sides: [&Repetitions<'_>; 2]) -> [Vec<f64>; 2] {
    let of_run = |run: &Vec<&PointRecord>| -> Vec<f64> {
        run.iter().filter_map(|record| quantity.value(record)).collect()
    };
    let runs = sides.map(|runs| runs.iter().map(of_run).filter(|run| !run.is_empty()).collect::<Vec<_>>());
    let means = |side: &Vec<Vec<f64>>| -> Option<Vec<f64>> {
        side.iter()
            .map(|run| mean_of_run(quantity, run))
            .collect::<Option<Vec<f64>>>()
            .filter(|means| means.len() > 1)
    };
    match runs.each_ref().map(means) {
        [Some(before), Some(after)] => [before, after],
        _ => runs.map(|side| side.concat()),
    }
}

/// The mean of a run's values at a point; nothing where there is none, or it completed nothing in a repetition.
fn mean_of_run(quantity: Quantity, values: &[f64]) -> Option<f64> {
    let is_alive = !values.is_empty() && !values.iter().any(|value| is_worst(*value, quantity.better()));
    is_alive.then(|| geometric_mean(values))
}

/// What the values of both sides at a point come to.
fn compared(
    name: &str,
    point: PointKey,
    quantity: Quantity,
    sides: [&Repetitions<'_>; 2],
    rules: &Rules<'_>,
) -> Option<Sides> {
    let values = values(quantity, sides);
    let found = Sides::new(quantity.better(), [&values[0], &values[1]])?;
    let Sides::Ratio(ratio) = found else { return Some(found) };
    let runs = sides.map(Vec::len);
    let spread = rules.between.and_then(|known| known.of_ratio(name, Some(point), quantity, runs));
    Some(Sides::Ratio(match spread {
        Some((variance, freedom)) => ratio.at_least(variance, freedom),
        None => ratio,
    }))
}

/// A quantity over all points. One that stopped at any point has stopped; of the others the points count at which both sides completed
/// something.
fn overall(
    name: &str,
    quantity: Quantity,
    found: &[Sides],
    points: &[(PointKey, [&Repetitions<'_>; 2])],
    rules: &Rules<'_>,
) -> Option<Change> {
    let change = |sides: &Sides| Change::of_sides(quantity, sides, rules.margin, rules.careful[1]);
    if found.contains(&Sides::Stopped) {
        return Some(change(&Sides::Stopped));
    }
    let ratios: Vec<LogRatio> = found
        .iter()
        .filter_map(|sides| if let Sides::Ratio(ratio) = sides { Some(ratio.clone()) } else { None })
        .collect();
    let Some(mean) = LogRatio::mean(&ratios) else {
        return found
            .first()
            .map(|first| if found.iter().all(|one| one == first) { first } else { &Sides::Neither })
            .map(change);
    };
    let runs = points.first().map_or([1, 1], |(_, sides)| sides.map(Vec::len));
    let mean = of_runs(quantity, points).unwrap_or(mean);
    let spread = rules.between.and_then(|known| known.of_ratio(name, None, quantity, runs));
    let mean = match spread {
        Some((variance, freedom)) => mean.at_least(variance, freedom),
        None => mean,
    };
    let mut change = change(&Sides::Ratio(mean));
    // Of a mean from which points are missing nothing good follows.
    if found.contains(&Sides::Neither) && change.verdict != Direction::Worse {
        change.verdict = Direction::Undecided;
    }
    Some(change)
}

/// The ratio of sides of several runs each: what differs from run to run is in all points of a run alike, so each run counts once,
/// with its mean over the points. Nothing where a side has fewer than two whole runs.
fn of_runs(quantity: Quantity, points: &[(PointKey, [&Repetitions<'_>; 2])]) -> Option<LogRatio> {
    let mean = |records: &Vec<&PointRecord>| -> Option<f64> {
        let values: Vec<f64> = records.iter().filter_map(|record| quantity.value(record)).collect();
        mean_of_run(quantity, &values)
    };
    let means = [0, 1].map(|side| {
        let runs = points.first().map_or(0, |(_, sides)| sides[side].len());
        let of_run = |run: usize| -> Option<f64> {
            let means: Option<Vec<f64>> = points
                .iter()
                .filter(|(_, sides)| sides.iter().all(|side| side.iter().flatten().next().is_some()))
                .map(|(_, sides)| mean(sides[side].get(run)?))
                .collect();
            means.filter(|means| !means.is_empty()).map(|means| geometric_mean(&means))
        };
        (0..runs).filter_map(of_run).collect::<Vec<f64>>()
    });
    (means[0].len() > 1 && means[1].len() > 1).then(|| LogRatio::new(&means[0], &means[1])).flatten()
}

fn loads(points: &[(PointKey, [&Repetitions<'_>; 2])]) -> Option<Busier> {
    let samples = |side: usize| {
        let records = points.iter().flat_map(|(_, sides)| sides[side].iter().flatten());
        records.filter_map(|record| LoadSample::of(&record.measured()?.host)).collect::<Vec<_>>()
    };
    busier([&samples(0), &samples(1)])
}

#[cfg(test)]
mod tests;
