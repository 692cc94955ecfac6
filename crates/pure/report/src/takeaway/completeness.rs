//! What the plan asked for and the run has not.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::PointKey;

use crate::format::count;
use crate::scene::Scene;

/// Every point that was planned or recorded.
fn points(scene: &Scene<'_>) -> BTreeSet<PointKey> {
    let mut points: BTreeSet<PointKey> =
        scene.places.iter().flat_map(|place| place.sides.keys().copied()).collect();
    let Some(plan) = scene.provenance.plan.grid() else { return points };
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
pub(super) fn missing(scene: &Scene<'_>) -> Option<String> {
    let recorded: BTreeSet<(PointKey, &str, u32)> = scene
        .records
        .iter()
        .filter(|record| scene.place_of(record).is_some())
        .map(|record| (record.point, record.environment.as_str(), record.repetition))
        .collect();
    let points = points(scene);
    let repetitions = scene.provenance.plan.grid().map_or(0, |plan| plan.repetitions);
    let planned = points.len() * scene.places.len() * repetitions as usize;
    let done = recorded.iter().filter(|(_, _, repetition)| *repetition < repetitions).count();
    (done < planned).then(|| {
        format!(
            "The run is incomplete: {} of {} missing, {} of {} compared.",
            planned - done,
            count(planned, "planned measurement"),
            scene.compared,
            count(points.len(), "point"),
        )
    })
}

/// One sentence for each environment and reason.
pub(super) fn unavailable(scene: &Scene<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for place in &scene.places {
        let mut reasons: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for side in place.sides.values() {
            for why in &side.unavailable {
                reasons.entry(why).or_default()[usize::from(side.repetitions > 0)] += 1;
            }
        }
        for (why, [wholly, partly]) in reasons {
            let place = &place.phrase;
            let why = why.trim_end_matches('.');
            if wholly > 0 {
                sentences.push(format!("{} could not be measured {place}: {why}.", count(wholly, "point")));
            }
            if partly > 0 {
                sentences.push(format!(
                    "Some repetitions of {} could not be measured {place}: {why}.",
                    count(partly, "point")
                ));
            }
        }
    }
    sentences
}
