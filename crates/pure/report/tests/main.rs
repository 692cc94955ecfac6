//! The tests of this crate from outside, one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod application_study;
mod browser;
mod chromium;
mod configurations;
mod csv;
mod desktops;
mod forms;
mod markup;
mod oltp;
mod operations;
mod page;
mod pages;
mod prediction;
mod predictions;
mod sentences;
mod sets;
mod tiles_study;
