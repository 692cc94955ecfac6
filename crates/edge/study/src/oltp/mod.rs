//! The study of a database: the same appliance natively and in VMs under TPC-C's transactions ([Platform 2014], sections III.A and
//! IV.A).

mod appliances;
mod database;
mod prepared;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod sides;

pub use appliances::ApplianceSides;
pub use prepared::DatabaseAppliance;
pub use run::{OltpStudy, run_oltp};
pub use sides::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
