//! The order in which sets of machines are measured.

use std::collections::BTreeSet;

use virtbench_record::{ColocationPlan, SetRecord, SetRole};
use virtbench_units::Random;

use crate::studies::grid::schedule::shuffle;
use virtbench_runs::RunFolder;

/// One repetition of one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledSet {
    /// Index of the set in the plan.
    pub set: usize,
    /// Which repetition, from 0.
    pub repetition: u32,
}

/// Every step of a plan, in order: what finds a saturation first, then each repetition with its sets in
/// an order of its own, drawn from the seed, so that whatever drifts hits them alike.
#[must_use]
pub fn schedule_sets(plan: &ColocationPlan) -> Vec<ScheduledSet> {
    let of_role = |saturation: bool| -> Vec<usize> {
        let all = plan.sets.iter().enumerate();
        all.filter(|(_, set)| (set.role == SetRole::Saturation) == saturation)
            .map(|(index, _)| index)
            .collect()
    };
    let mut random = Random::new(plan.seed);
    let mut steps = Vec::new();
    for set in of_role(true) {
        steps.extend((0..plan.repetitions).map(|repetition| ScheduledSet { set, repetition }));
    }
    for repetition in 0..plan.repetitions {
        let mut order = of_role(false);
        shuffle(&mut order, &mut random);
        steps.extend(order.into_iter().map(|set| ScheduledSet { set, repetition }));
    }
    steps
}

/// What of a folder's plan is not measured yet, in order.
#[must_use]
pub fn missing_sets(folder: &RunFolder<SetRecord>) -> Vec<ScheduledSet> {
    let provenance = folder.provenance();
    let Some(plan) = provenance.plan.colocation() else { return Vec::new() };
    let measured: BTreeSet<(&str, u32)> =
        folder.records().iter().map(|record| (record.set.as_str(), record.repetition)).collect();
    let steps = schedule_sets(plan).into_iter();
    steps.filter(|step| !measured.contains(&(plan.sets[step.set].name.as_str(), step.repetition))).collect()
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
