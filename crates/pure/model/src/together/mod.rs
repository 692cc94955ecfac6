//! Several machines at once: do they share evenly ([Multi-VM 2010]), and how far do they disturb each other
//! ([VirtualFence 2013], sections 4 and 5)?

mod deviation;
mod fairness;
mod hosts;
mod neighbours;
mod overload;
mod series;
mod start;
mod systems;
#[cfg(test)]
mod test_support;

pub use deviation::{Deviated, DeviationAnalysis, DisturbedSet, DisturbedVm, analyse_deviation};
pub use fairness::{jain, sample_stddev, worst_to_best};
pub use hosts::{far_hosts, machine_numbers};
pub use neighbours::{
    NeighbourAnalysis, NeighbourMetric, NeighbourSet, Region, Shared, VmShare, analyse_neighbours,
};
pub use overload::{Overload, overload};
pub use series::{IntervalShares, lay_side_by_side};
pub use start::{loose_start, loose_starts};
pub use systems::{compared_system, system_rows};
