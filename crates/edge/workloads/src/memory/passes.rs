//! Passes of one kernel over the arrays, all threads in step.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_engine::monotonic_ns;
use virtbench_workload::MemoryKernel;

use super::arrays::{Arrays, Part};
use super::simd::Simd;
use crate::runner::{RunError, Watch};
use crate::threads::each;

/// Results of passes.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Bytes moved, as STREAM counts.
    pub bytes: u64,
    /// Time of the passes alone, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether it went on for as long as it was to.
    pub whole: bool,
}

/// Repeats `kernel` for `time_ns`, at least once.
pub(crate) fn passes(
    arrays: &mut Arrays,
    simd: Simd,
    kernel: MemoryKernel,
    time_ns: u64,
    watch: &Watch<'_>,
) -> Result<Passes, RunError> {
    let bytes = arrays.array_bytes() / 8 * kernel.bytes_per_element();
    let parts: Vec<Part<'_>> = arrays.parts().collect();
    let gate = Barrier::new(parts.len());
    let over = AtomicBool::new(false);
    let done = each(parts.into_iter().enumerate(), |(index, mut part)| {
        let mut done = Passes::default();
        loop {
            // One thread times all: from before the others may begin until the last has ended.
            let begin_ns = monotonic_ns();
            gate.wait();
            if over.load(Ordering::Acquire) {
                return done;
            }
            simd.pass(kernel, &mut part);
            gate.wait();
            if index == 0 {
                done.elapsed_ns += monotonic_ns() - begin_ns;
                done.bytes += bytes;
                done.whole = done.elapsed_ns >= time_ns;
                watch.count(1, bytes);
                over.store(done.whole || watch.is_over(), Ordering::Release);
            }
        }
    })?;
    Ok(done.into_iter().next().unwrap_or_default())
}
