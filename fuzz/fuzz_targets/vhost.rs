//! The vhost-user front end: no client panics the daemon or leaves a request behind.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/edge/fence-daemon/tests/common/held.rs"]
mod held;
#[path = "../../crates/edge/fence-daemon/tests/invent_vhost.rs"]
mod invent;

fuzz_target!(|bytes: &[u8]| invent::play(bytes));
