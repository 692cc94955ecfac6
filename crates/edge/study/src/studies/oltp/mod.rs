//! The study of a database: the same appliance natively and in VMs under TPC-C's transactions ([Platform 2014], sections III.A and
//! IV.A).

mod appliances;
mod cycles;
mod database;
mod experiment;
mod observed;
mod prepared;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod server_log;
mod sides;
mod watch;

pub use appliances::ApplianceSides;
pub(crate) use database::{connect, database_kind, port};
pub use experiment::OltpOptions;
pub use prepared::DatabaseAppliance;
pub use run::{OltpStudy, run_oltp};
pub use sides::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
