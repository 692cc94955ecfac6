//! Invented plans, records and provenance of each kind of run, for the tests of several crates: nothing here was measured. And what
//! tests of one run share.

#![allow(clippy::unwrap_used, missing_docs, reason = "fixtures of tests")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small positive invented numbers"
)]

pub mod application;
pub mod configurations;
pub mod desktops;
pub mod grid;
pub mod host;
pub mod oltp;
pub mod operations;
pub mod samples;
pub mod sets;
pub mod this_run;
pub mod tiles;
