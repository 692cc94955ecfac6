//! The fence's cache under guests that share, repeat and change their buffers: it holds what it should.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pure/fence/tests/invent_guests.rs"]
mod invent;
#[path = "../../crates/pure/fence/tests/world/mod.rs"]
mod world;

fuzz_target!(|bytes: &[u8]| invent::play(bytes));
