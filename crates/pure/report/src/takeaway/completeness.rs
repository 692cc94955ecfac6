//! What the plan asked for and the run has not.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::PointKey;

use crate::format::count;
use crate::run::{Run, Which};

/// Every point that was planned or recorded.
pub(crate) fn points(run: &Run<'_>) -> BTreeSet<PointKey> {
    let plan = &run.provenance.plan;
    let mut points: BTreeSet<PointKey> = run.comparison.points.iter().map(|point| point.key).collect();
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
pub(super) fn missing(run: &Run<'_>) -> Option<String> {
    let recorded: BTreeSet<(PointKey, &str, u32)> = run
        .records
        .iter()
        .filter(|record| run.side_of(record).is_some())
        .map(|record| (record.point, record.environment.as_str(), record.repetition))
        .collect();
    let points = points(run);
    let repetitions = run.provenance.plan.repetitions;
    let planned = points.len() * 2 * repetitions as usize;
    let done = recorded.iter().filter(|(_, _, repetition)| *repetition < repetitions).count();
    (done < planned).then(|| {
        format!(
            "The run is incomplete: {} of {} missing, {} of {} compared.",
            planned - done,
            count(planned, "planned measurement"),
            run.comparison.curve.len(),
            count(points.len(), "point"),
        )
    })
}

/// One sentence for each side and reason.
pub(super) fn unavailable(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for which in Which::BOTH {
        let mut reasons: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for point in &run.comparison.points {
            let side = which.of(point);
            for why in &side.unavailable {
                reasons.entry(why).or_default()[usize::from(side.repetitions > 0)] += 1;
            }
        }
        for (why, [wholly, partly]) in reasons {
            let place = which.place();
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
