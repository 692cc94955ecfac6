//! How much comparable runs differ from each other, from their measures.

use std::collections::BTreeMap;

use virtbench_record::PointKey;

use super::change_points::change_points;
use super::measures::subject;
use super::run::HistoryRun;
use crate::before_after::BetweenRuns;
use crate::quantity::{Quantity, is_worst};

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
