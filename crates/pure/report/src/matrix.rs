//! Who disturbs whom: pairs of workloads as victims and aggressors.

use virtbench_model::together::{DeviationAnalysis, DisturbedSet, DisturbedVm};

/// The pairs of a run, by workload.
#[derive(Debug)]
pub(crate) struct Matrix<'a> {
    /// The workloads, as the command line had them.
    pub(crate) workloads: &'a [String],
    analysis: &'a DeviationAnalysis,
}

impl<'a> Matrix<'a> {
    /// The matrix of a run of pairs; nothing where it is not of several workloads.
    pub(crate) fn new(workloads: &'a [String], analysis: &'a DeviationAnalysis) -> Option<Self> {
        (workloads.len() > 1).then_some(Self { workloads, analysis })
    }

    /// The victim's VM of the pair: the first, where both do the same.
    pub(crate) fn cell(&self, victim: usize, aggressor: usize) -> Option<&'a DisturbedVm> {
        self.pair(victim, aggressor).map(|(_, vm)| vm)
    }

    /// Whether the host's overload falsifies the pair's figures.
    pub(crate) fn is_overloaded(&self, victim: usize, aggressor: usize) -> bool {
        self.pair(victim, aggressor).is_some_and(|(set, _)| set.overload.is_some())
    }

    fn pair(&self, victim: usize, aggressor: usize) -> Option<(&'a DisturbedSet, &'a DisturbedVm)> {
        self.analysis.sets.iter().find_map(|set| match set.vms.as_slice() {
            [first, second] if first.workload == victim && second.workload == aggressor => Some((set, first)),
            [first, second] if first.workload == aggressor && second.workload == victim => {
                Some((set, second))
            }
            _ => None,
        })
    }
}
