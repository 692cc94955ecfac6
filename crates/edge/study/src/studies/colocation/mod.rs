//! Co-location: machines that run at one moment ([Multi-VM 2010]; [VirtualFence 2013], sections 4 and 5). Which runs
//! beside which, their disks, the order, the measurements, and ways of sharing that are compared by them.

mod disks;
mod jobs;
mod measure;
mod run;
mod schedule;
mod sets;
mod share;
#[cfg(feature = "full")]
mod simulation;
mod study;
#[cfg(feature = "full")]
mod systems;

pub use jobs::JobsError;
pub use measure::measure_sets;
pub use schedule::{ScheduledSet, missing_sets, schedule_sets};
pub use sets::{Saturating, takes_a_rate};
#[cfg(feature = "full")]
pub use simulation::{SimulationError, simulate};
pub use study::{Colocation, ColocationOptions, NamedJob};
#[cfg(feature = "full")]
pub use systems::{ComparedSystems, TriedSystem, compare_systems, estimate_systems};
