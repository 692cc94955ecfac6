//! Several machines at once: do they share evenly ([Multi-VM 2010]), and how far do they disturb each other
//! ([VirtualFence 2013], sections 4 and 5)?

mod deviation;
mod fairness;
mod neighbours;
mod overload;
#[cfg(test)]
pub(crate) mod test_support;

pub use deviation::{
    Deviated, DeviationAnalysis, DisturbedSet, DisturbedVm, analyse_deviation, compared_system, system_rows,
};
pub use fairness::{IntervalShares, jain, lay_side_by_side, sample_stddev, worst_to_best};
pub use neighbours::{
    NeighbourAnalysis, NeighbourMetric, NeighbourSet, Region, Shared, VmShare, analyse_neighbours,
};
pub use overload::{Overload, far_hosts, loose_start, loose_starts, machine_numbers, overload};
