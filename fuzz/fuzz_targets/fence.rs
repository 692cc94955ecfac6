//! The metadata of the fence's cache: recovery refuses any bytes or serves on from them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pure/fence/tests/invent.rs"]
mod invent;

fuzz_target!(|bytes: &[u8]| invent::recover_from(bytes));
