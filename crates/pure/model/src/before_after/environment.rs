//! One environment of two runs: each quantity at each point, and over all of them.

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointRecord};

use super::between_runs::BetweenRuns;
use super::change::Change;
use super::compared::{ChangedEnvironment, ChangedPoint};
use super::independent::{LogRatio, Sides};
use crate::host_load::{Busier, LoadSample, busier};
use crate::pairwise::Margin;
use crate::quantity::{Direction, Quantity, is_worst};

/// The measured records of an environment at a point, run by run.
pub(super) type Repetitions<'r> = Vec<Vec<&'r PointRecord>>;

/// How environments are judged.
pub(super) struct Rules<'a> {
    pub(super) margin: Margin,
    /// Confidence that allows for how many points are looked at, and for how many environments.
    pub(super) careful: [f64; 2],
    pub(super) between: Option<&'a BetweenRuns>,
    /// Whether both sides were measured in turn: then they had the same host, whatever it did.
    pub(super) alternated: bool,
}

/// Compares an environment at the points that both sides have.
pub(super) fn changed_environment(
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

/// What the values of both sides at a point come to.
fn compared(
    name: &str,
    point: PointKey,
    quantity: Quantity,
    sides: [&Repetitions<'_>; 2],
    rules: &Rules<'_>,
) -> Option<Sides> {
    let values = sides.map(|runs| {
        let records = runs.iter().flatten();
        records.filter_map(|record| quantity.value(record)).collect::<Vec<f64>>()
    });
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
    let alive = |records: &[&PointRecord]| -> Option<f64> {
        let values: Vec<f64> = records.iter().filter_map(|record| quantity.value(record)).collect();
        let is_alive = !values.is_empty() && !values.iter().any(|value| is_worst(*value, quantity.better()));
        is_alive.then(|| values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64)
    };
    let means = [0, 1].map(|side| {
        let runs = points.first().map_or(0, |(_, sides)| sides[side].len());
        let of_run = |run: usize| -> Option<f64> {
            let logarithms: Option<Vec<f64>> = points
                .iter()
                .filter(|(_, sides)| sides.iter().all(|side| side.iter().flatten().next().is_some()))
                .map(|(_, sides)| alive(sides[side].get(run)?))
                .collect();
            let logarithms = logarithms.filter(|one| !one.is_empty())?;
            Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
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
