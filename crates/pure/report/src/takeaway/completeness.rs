//! What the plan asked for and the run has not.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::PointKey;

use crate::environments::Environments;
use crate::format::count;

/// Every point that was planned or recorded.
fn points(environments: &Environments<'_>) -> BTreeSet<PointKey> {
    let mut points: BTreeSet<PointKey> =
        environments.all.iter().flat_map(|environment| environment.sides.keys().copied()).collect();
    let Some(plan) = environments.provenance.plan.grid() else { return points };
    for &block_bytes in &plan.blocks_bytes {
        for &read_percent in &plan.read_percents {
            for &random_percent in &plan.random_percents {
                points.insert(PointKey { block_bytes, read_percent, random_percent });
            }
        }
    }
    points
}

/// Whether and how far the run is short of its plan. A point recorded as unavailable is not missing.
pub(super) fn missing(environments: &Environments<'_>) -> Option<String> {
    let recorded: BTreeSet<(PointKey, &str, u32)> = environments
        .records
        .iter()
        .filter(|record| environments.of_record(record).is_some())
        .map(|record| (record.point, record.environment.as_str(), record.repetition))
        .collect();
    let points = points(environments);
    let repetitions = environments.provenance.plan.grid().map_or(0, |plan| plan.repetitions);
    let planned = points.len() * environments.all.len() * repetitions as usize;
    let done = recorded.iter().filter(|(_, _, repetition)| *repetition < repetitions).count();
    (done < planned).then(|| {
        format!(
            "The run is incomplete: {} of {} missing, {} of {} compared.",
            planned - done,
            count(planned, "planned measurement"),
            environments.compared,
            count(points.len(), "point"),
        )
    })
}

/// One sentence for each environment and reason.
pub(super) fn unavailable(environments: &Environments<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for environment in &environments.all {
        let mut reasons: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for side in environment.sides.values() {
            for why in &side.unavailable {
                reasons.entry(why).or_default()[usize::from(side.repetitions > 0)] += 1;
            }
        }
        for (why, [wholly, partly]) in reasons {
            let phrase = &environment.phrase;
            let why = why.trim_end_matches('.');
            if wholly > 0 {
                sentences.push(format!("{} could not be measured {phrase}: {why}.", count(wholly, "point")));
            }
            if partly > 0 {
                sentences.push(format!(
                    "Some repetitions of {} could not be measured {phrase}: {why}.",
                    count(partly, "point")
                ));
            }
        }
    }
    sentences
}
