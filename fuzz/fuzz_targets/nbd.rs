//! The NBD server: no client panics it or gets more of it than its limits allow.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pure/nbd/tests/common/mod.rs"]
mod common;

fuzz_target!(|bytes: &[u8]| common::invent::play(bytes));
