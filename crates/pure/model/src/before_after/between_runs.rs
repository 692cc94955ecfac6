//! How much runs of one configuration differ from each other, as comparable runs of the past tell.
//!
//! The repetitions of one run share what is peculiar to it: where its file lies, what else the host does that hour. Their spread
//! says nothing of that, so two runs of one configuration seem to differ more often than an interval promises.

use std::collections::BTreeMap;

use virtbench_record::PointKey;

use crate::quantity::Quantity;

/// The spread of single runs around their level.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BetweenRuns {
    /// Comparable runs behind it.
    pub runs: usize,
    /// For each environment, point (all of them where there is none) and quantity: the variance of a run's mean, as a logarithm,
    /// and its degrees of freedom.
    pub spreads: BTreeMap<(String, Option<PointKey>, Quantity), (f64, f64)>,
}

impl BetweenRuns {
    /// The variance of the ratio of two sides of so many runs, and its degrees of freedom.
    pub(super) fn of_ratio(
        &self,
        environment: &str,
        point: Option<PointKey>,
        quantity: Quantity,
        runs: [usize; 2],
    ) -> Option<(f64, f64)> {
        let (variance, freedom) = *self.spreads.get(&(environment.to_owned(), point, quantity))?;
        let [before, after] = runs.map(|runs| runs.max(1) as f64);
        Some((variance * (1.0 / before + 1.0 / after), freedom))
    }
}
