//! Two runs, compared.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::PointKey;

use super::change::Change;
use crate::host_load::Busier;
use crate::quantity::{Direction, Quantity};

/// A point in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedPoint {
    /// Which point.
    pub point: PointKey,
    /// Repetitions before and after.
    pub repetitions: [usize; 2],
    /// Each quantity that both runs have.
    pub changes: Vec<Change>,
}

/// An environment in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedEnvironment {
    /// Its name.
    pub name: String,
    /// Each quantity over all points.
    pub overall: Vec<Change>,
    /// Point by point.
    pub points: Vec<ChangedPoint>,
    /// What else its host was busier with on one side, if that forbids a verdict. That a side stopped is said all the same.
    pub busier: Option<Busier>,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// What else differs between the runs.
    pub differences: Vec<String>,
    /// Whether they were measured in turn, so that what changes slowly on a host is in both alike.
    pub alternated: bool,
    /// Runs before and after.
    pub runs: [usize; 2],
    /// Comparable runs of the past by which it is known how much runs differ; none where nobody knows.
    pub runs_of_the_past: Option<usize>,
    /// Whether both sides are one run, or copies of it.
    pub same_run: bool,
    /// Each environment that both have.
    pub environments: Vec<ChangedEnvironment>,
    /// Environments of one run only.
    pub unmatched_environments: Vec<String>,
    /// Points of one run only, each in one environment of both.
    pub unmatched_points: usize,
    /// What could not be judged, each in words.
    pub undecided: Vec<String>,
}

impl BeforeAfter {
    /// Whether anything became worse, allowing for how much was looked at.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.environments.iter().any(|environment| {
            let points = environment.points.iter().flat_map(|point| &point.changes);
            environment.overall.iter().chain(points).any(|change| change.regression)
        })
    }

    /// Whether anything was judged at all: a quantity of an environment, by more than single values, on hosts that were as busy.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        !self.same_run
            && self.environments.iter().any(|environment| {
                let judged = |change: &Change| {
                    change.is_judged() && (environment.busier.is_none() || change.is_stopped())
                };
                environment.overall.iter().any(judged)
            })
    }

    /// Whether an environment's host was busier on one side, so that the figures tell of that too.
    #[must_use]
    pub fn is_not_comparable(&self) -> bool {
        self.environments.iter().any(|environment| environment.busier.is_some())
    }

    /// How many points came out how in a quantity, over all environments.
    #[must_use]
    pub fn tally(&self, quantity: Quantity) -> BTreeMap<Direction, usize> {
        let mut tally = BTreeMap::new();
        let points = self.environments.iter().flat_map(|environment| &environment.points);
        for change in points.flat_map(|point| &point.changes).filter(|change| change.quantity == quantity) {
            *tally.entry(change.verdict).or_default() += 1;
        }
        tally
    }
}
