//! Co-location: machines that run at one moment ([Multi-VM 2010]; [VirtualFence 2013], sections 4 and 5). Which runs
//! beside which, their disks, the order, the measurements, and ways of sharing that are compared by them.

mod measure;
mod run;
mod schedule;
mod study;
#[cfg(feature = "full")]
mod systems;

pub use measure::measure_sets;
pub use schedule::{JobsError, Saturating, ScheduledSet, missing_sets, schedule_sets, takes_a_rate};
pub use study::{Colocation, ColocationOptions, NamedJob};
#[cfg(feature = "full")]
pub use systems::{
    ComparedSystems, SimulationError, TriedSystem, compare_systems, estimate_systems, simulate,
};
