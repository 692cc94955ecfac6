//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod adapters;
mod appliances;
mod fence;
mod filesystems;
mod guests;
mod measured;
mod native;
mod protocol;
mod uml;
mod uml_faults;
mod workloads;
