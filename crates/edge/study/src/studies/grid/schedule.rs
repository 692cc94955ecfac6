//! The order in which a plan's points are measured.

use virtbench_record::{GridPlan, PointKey};
use virtbench_units::Random;

use crate::studies::grid::definition::points;

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPoint {
    /// The point.
    pub point: PointKey,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Index of the environment in the plan.
    pub environment: usize,
}

/// Every measurement of a plan, in order.
///
/// Environments alternate at each point, so that whatever drifts (a disk that fills, a neighbour
/// on the host) hits them alike, and which comes first alternates too, since the second may find
/// a warmer device. Each repetition passes through the points in an order of its own, drawn from
/// the plan's seed, so that no point always follows the same other one.
#[must_use]
pub fn schedule(plan: &GridPlan) -> Vec<ScheduledPoint> {
    let mut random = Random::new(plan.seed);
    let mut steps = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut order = points(plan);
        shuffle(&mut order, &mut random);
        for (index, point) in order.into_iter().enumerate() {
            let mut environments: Vec<usize> = (0..plan.environments.len()).collect();
            if (index + repetition as usize) % 2 == 1 {
                environments.reverse();
            }
            steps.extend(environments.into_iter().map(|environment| ScheduledPoint {
                point,
                repetition,
                environment,
            }));
        }
    }
    steps
}

/// Fisher and Yates.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        let chosen = usize::try_from(random.below(last as u64 + 1)).unwrap_or(last);
        items.swap(last, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan() -> GridPlan {
        GridPlan {
            grid: "test".into(),
            blocks_bytes: vec![4096, 16384],
            read_percents: vec![0, 100],
            random_percents: vec![0, 100],
            repetitions: 4,
            outstanding: 16,
            workers: 1,
            ramp_ns: 0,
            time_ns: 1,
            size_bytes: 1 << 20,
            environments: vec!["native".into(), "vm".into()],
            seed: 3,
        }
    }

    #[test]
    fn everything_is_measured_once() {
        let steps = schedule(&plan());
        let distinct: BTreeSet<_> =
            steps.iter().map(|step| (step.point, step.repetition, step.environment)).collect();
        assert_eq!((steps.len(), distinct.len()), (64, 64));
    }

    #[test]
    fn environments_meet_at_each_point_and_take_turns_at_going_first() {
        let steps = schedule(&plan());
        let mut first = [0, 0];
        for pair in steps.chunks(2) {
            assert_eq!((pair[0].point, pair[0].repetition), (pair[1].point, pair[1].repetition));
            assert_ne!(pair[0].environment, pair[1].environment);
            first[pair[0].environment] += 1;
        }
        assert_eq!(first, [16, 16]);
    }

    #[test]
    fn a_seed_reproduces_the_order_and_another_changes_it() {
        assert_eq!(schedule(&plan()), schedule(&plan()));
        assert_ne!(schedule(&plan()), schedule(&GridPlan { seed: 4, ..plan() }));
    }
}
