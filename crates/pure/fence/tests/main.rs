//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::cast_possible_truncation, reason = "the worlds of these tests are small")]

mod crash;
mod exhaustive;
mod flips;
mod inspect;
mod invent;
mod invent_guests;
mod neighbours;
mod rot;
mod start;
mod steady;
mod torn;
mod trouble;
mod work;
mod world;
