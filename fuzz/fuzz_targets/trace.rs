//! Traces: no bytes panic, and what is read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::trace::{Trace, read_trace, write_csv};

/// A trace without the lines it came from, which are others where there were comments.
fn less_lines(mut trace: Trace) -> Trace {
    trace.ops.iter_mut().for_each(|op| op.line = 0);
    Trace { notes: Vec::new(), ..trace }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = read_trace(bytes) {
        let again = read_trace(write_csv(&trace.ops).as_bytes()).expect("our own CSV is read");
        assert_eq!(less_lines(again), less_lines(trace));
    }
});
