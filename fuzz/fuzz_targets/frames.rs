//! Frames of the agent's protocol, from either side.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_agent::protocol::{Reply, Request, receive};

fuzz_target!(|bytes: &[u8]| {
    let mut reader = bytes;
    while receive::<Request>(&mut reader).is_ok() {}
    let mut reader = bytes;
    while receive::<Reply>(&mut reader).is_ok() {}
});
