//! Traces: no bytes panic, and what is read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::trace::{read_trace, write_csv};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = read_trace(bytes) {
        let again = read_trace(write_csv(&trace.ops).as_bytes()).expect("our own CSV is read");
        assert_eq!(again.ops, trace.ops);
    }
});
