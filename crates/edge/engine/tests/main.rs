//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod amounts;
mod bad_nbd_servers;
mod common;
mod faults;
mod kernel;
mod ledger;
mod load;
mod nbd;
mod open_loop;
mod replay;
mod trim_flush;
mod verify;
mod vhost_user;
