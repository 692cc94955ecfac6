//! Memory throughput: COPY, SCALE, ADD and TRIAD ([Multi-VM 2010], section 4.1), counted and checked as
//! STREAM does.
//!
//! The arrays are one for all threads, each with its own part of them. A pass of a kernel over the
//! arrays begins and ends for all threads together.

mod arithmetic;
mod arrays;
mod passes;
mod simd;

use virtbench_record::Better;
use virtbench_units::format_bytes;
use virtbench_workload::{MAX_THREADS, MemoryKernel, MemorySpec, Stores};

use crate::machine::{available_memory_bytes, last_level_cache_bytes};
use crate::runner::{RunError, Runner, Watch};
use crate::sheet::Sheet;
use crate::threads::threads_meant;
use arithmetic::after;
use arrays::Arrays;
use passes::passes;
use simd::Simd;

/// Arrays are so many times the last-level cache, as STREAM's rules have it.
const CACHES: u64 = 4;
/// What is taken for the last-level cache where the kernel does not say, in bytes.
const USUAL_CACHE_BYTES: u64 = 32 << 20;

/// Arrays and the instructions to go over them with.
pub(crate) struct Memory {
    arrays: Arrays,
    threads: u32,
    kernel_ns: u64,
    variants: Vec<Variant>,
    /// What every element of `a`, `b` and `c` is to hold.
    expected: [f64; 3],
}

/// One way of storing results.
struct Variant {
    simd: Simd,
    /// Behind the kernel's name in records.
    suffix: &'static str,
}

impl Memory {
    /// Allocates the arrays and fills them.
    ///
    /// # Errors
    /// They do not fit into memory, or the processor lacks what was asked for.
    pub(crate) fn new(spec: &MemorySpec, notes: &mut Vec<String>) -> Result<Self, RunError> {
        let threads = threads_meant(spec.threads).min(MAX_THREADS);
        let array_bytes = array_bytes(spec, notes)?;
        let variants = variants(spec.stores, notes)?;
        let expected = [1.0, 2.0, 0.0];
        let mut arrays = Arrays::new(array_bytes, threads).map_err(|source| {
            RunError::resource(format!("three arrays of {}", format_bytes(array_bytes)), source)
        })?;
        arrays.fill(expected)?;
        notes.push(format!("three arrays of {} each", format_bytes(arrays.array_bytes())));
        Ok(Self { arrays, threads, kernel_ns: spec.kernel_ns, variants, expected })
    }
}

impl Runner for Memory {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError> {
        for variant in &self.variants {
            for kernel in MemoryKernel::ALL {
                if watch.is_over() {
                    return Ok(());
                }
                let done = passes(&mut self.arrays, variant.simd, kernel, self.kernel_ns, watch)?;
                self.expected = after(kernel, self.expected);
                if done.whole {
                    let rate = done.bytes as f64 / (done.elapsed_ns.max(1) as f64 / 1e9);
                    let name = format!("{}{}", kernel.name(), variant.suffix);
                    sheet.sample(&name, "B/s", Better::Higher, rate);
                }
            }
        }
        let wrong = self.arrays.wrong_elements(self.expected)?;
        if wrong > 0 {
            sheet.errors("elements with a wrong value", wrong);
            self.arrays.fill(self.expected)?;
        }
        Ok(())
    }
}

fn variants(stores: Stores, notes: &mut Vec<String>) -> Result<Vec<Variant>, RunError> {
    let mut variants = Vec::new();
    if stores != Stores::NonTemporal {
        variants.push(Variant { simd: Simd::regular(), suffix: "" });
    }
    if stores != Stores::Regular {
        match Simd::non_temporal() {
            Some(simd) => variants.push(Variant { simd, suffix: " non-temporal" }),
            None if stores == Stores::Both => {
                notes.push("non-temporal stores: unavailable, this processor has none".to_owned());
            }
            None => {
                let why = "stores=non-temporal: this processor has none; use stores=regular";
                return Err(RunError::Misfit(why.to_owned()));
            }
        }
    }
    Ok(variants)
}

/// The size of an array that is asked for, within what memory there is.
fn array_bytes(spec: &MemorySpec, notes: &mut Vec<String>) -> Result<u64, RunError> {
    let cache = last_level_cache_bytes();
    if cache.is_none() {
        notes.push(format!(
            "the size of the last-level cache is unknown: {} assumed",
            format_bytes(USUAL_CACHE_BYTES)
        ));
    }
    let wanted = CACHES * cache.unwrap_or(USUAL_CACHE_BYTES);
    let available = available_memory_bytes().unwrap_or(u64::MAX);
    let chosen = if spec.array_bytes > 0 {
        // Beyond this the kernel would have to kill something.
        if spec.array_bytes.saturating_mul(3) > available / 10 * 9 {
            return Err(RunError::Misfit(format!(
                "array={}: three of them do not fit into the {} of memory that are free: make it smaller",
                format_bytes(spec.array_bytes),
                format_bytes(available >> 20 << 20)
            )));
        }
        spec.array_bytes
    } else {
        wanted.min(available / 6).max(MemorySpec::MIN_ARRAY_BYTES)
    };
    if chosen < wanted {
        notes.push(format!(
            "arrays are smaller than {CACHES} times the last-level cache ({}): what the cache holds is faster than memory",
            format_bytes(wanted)
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
