//! Loads a database with the five transactions of TPC-C: populates it, applies the load, checks its consistency.
//!
//! Transactions after TPC-C's specification; not comparable with published TPC results.
//!
//! Users are connections, and tasks of a few threads. What a user enters is drawn without a clock or a database (`draws`,
//! `population`, `input`, `mix`, `queue`, `tally`); `session` is the one seam between the transactions and both databases. Threads,
//! the load's course and its series are those of every kind of users (`virtbench_users`).

mod address;
mod check;
mod draws;
mod driver;
mod error;
mod exclusive;
mod input;
mod local_server;
mod mariadb;
mod mark;
mod mix;
mod outcome;
mod populate;
mod population;
mod postgresql;
mod run;
mod schema;
mod session;
mod statement;
mod tables;
mod tally;
mod tls;
mod transactions;
mod user;

pub use address::{Address, Connect, Endpoint};
pub use check::{Checked, Depth, check};
pub use error::{Fault, FaultKind, Left, OltpError};
pub use local_server::{LocalCertificates, LocalServer};
pub use mark::{FORMAT as POPULATION_FORMAT, find_population};
pub use outcome::DISCLAIMER;
pub use populate::{Populated, Progress, populate};
pub use population::Population;
pub use run::{LoadEvent, run, run_from, settle};
pub use session::postgresql_client;
pub use tables::Checksum;
pub use tls::{Tls, TlsMode};
