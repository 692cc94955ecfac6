//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod earlier;
mod measurements;
mod schema;
