//! A client of the NBD protocol (the NetworkBlockDevice project's `doc/proto.md`).
//!
//! No crate fits a load generator: `nbd` on crates.io blocks on each request, libnbd's bindings carry a C
//! library under the LGPL. What is said and understood is `virtbench_nbd`'s; `Connection` moves the bytes, under
//! time limits.

mod connection;
mod source;

pub use connection::{Connection, NbdAddress, NbdError};
pub(crate) use source::{NbdSource, Outbox};
