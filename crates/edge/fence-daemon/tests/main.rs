//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "common/certificates.rs"]
mod certificates;
mod common;
mod conformance;
#[path = "common/driver.rs"]
mod driver;
mod faults;
#[path = "common/held.rs"]
mod held;
mod hostile;
mod invent_vhost;
mod live;
mod members_live;
mod nbd_clients;
mod nbd_departed;
mod nbd_hostile;
mod nbd_memory;
mod nbd_model;
mod nbd_tls;
mod resize;
mod shared_buffers;
