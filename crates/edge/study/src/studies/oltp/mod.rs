//! The study of a database: the same appliance natively and in VMs under TPC-C's transactions ([Platform 2014], sections III.A and
//! IV.A).

mod appliances;
mod observed;
mod prepared;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;

pub use appliances::ApplianceSides;
pub use prepared::DatabaseAppliance;
pub(crate) use prepared::{connect, database_kind, port};
pub use run::{OltpOptions, OltpStudy, run_oltp};
pub use schedule::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
