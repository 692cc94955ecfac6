//! Loads a database with the five transactions of TPC-C: populates it, applies the load, checks its consistency.
//!
//! Transactions after TPC-C's specification; not comparable with published TPC results.
//!
//! Users are connections, and tasks of a few threads. What a user enters is drawn without a clock or a database (`draws`,
//! `population`, `input`, `mix`, `queue`, `tally`); `session` is the one seam between the transactions and both databases. Threads,
//! the load's course and its series are those of every kind of users (`virtbench_users`).

mod address;
mod blocking;
mod call;
mod check;
mod checksum;
mod done;
mod draws;
mod driver;
mod error;
mod exclusive;
mod fault;
mod find;
mod find_schema;
mod input;
mod isolation;
mod local_certificates;
mod local_server;
mod manner;
mod mariadb;
mod mark;
mod mix;
mod outcome;
mod populate;
mod population;
mod postgresql;
mod queue;
mod run;
mod schema;
mod session;
mod shared;
mod statement;
mod tables;
mod tally;
mod tls;
mod transactions;
mod user;
mod value;

pub use address::{Address, Connect, Endpoint};
pub use blocking::postgresql_client;
pub use check::{Checked, Depth, check};
pub use checksum::Checksum;
pub use error::{Left, OltpError};
pub use fault::{Fault, FaultKind};
pub use find::find_population;
pub use local_certificates::LocalCertificates;
pub use local_server::LocalServer;
pub use mark::FORMAT as POPULATION_FORMAT;
pub use outcome::DISCLAIMER;
pub use populate::{Populated, Progress, populate};
pub use population::Population;
pub use run::{LoadEvent, run, run_from, settle};
pub use tls::{Tls, TlsMode};
