//! Memory throughput: COPY, SCALE, ADD and TRIAD ([Multi-VM 2010], section 4.1), counted and checked as
//! STREAM does.
//!
//! The arrays are one for all threads, each with its own part of them. A pass of a kernel over the
//! arrays begins and ends for all threads together.
//!
//! The four kernels in vector instructions, with stores through the caches or past them.
//!
//! They are spelled out because a compiler turns a plain COPY into a call of `memcpy`, which decides
//! for itself how to store; then it is the library that is measured.

use std::io;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::MmapMut;
use virtbench_engine::monotonic_ns;
use virtbench_record::Better;
use virtbench_units::format_bytes;
use virtbench_workload::{MAX_THREADS, MemoryKernel, MemorySpec, Stores};

use crate::machine::{available_memory_bytes, last_level_cache_bytes};
use crate::runner::{RunError, Runner, Sheet, Watch, each, threads_meant};

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

/// The factor of SCALE and TRIAD. With `2 q + q^2 = 1` a round leaves `a` as large as it was, so that
/// any number of rounds neither overflows nor vanishes.
const FACTOR: f64 = std::f64::consts::SQRT_2 - 1.0;

/// What the elements of `a`, `b` and `c` hold after passes of a kernel, by the same operations in
/// the same order: to the last bit.
fn after(kernel: MemoryKernel, [a, b, c]: [f64; 3]) -> [f64; 3] {
    match kernel {
        MemoryKernel::Copy => [a, b, a],
        MemoryKernel::Scale => [a, FACTOR * c, c],
        MemoryKernel::Add => [a, b, a + b],
        MemoryKernel::Triad => [b + FACTOR * c, b, c],
    }
}

/// Parts begin at multiples of so many elements: a page, so that threads share no line and vectors
/// are aligned.
const GRAIN: usize = 512;

/// The arrays `a`, `b` and `c` of doubles.
pub(crate) struct Arrays {
    maps: [MmapMut; 3],
    /// Elements of each array.
    length: usize,
    /// Elements of each part but the last.
    part: usize,
}

/// A thread's part of the arrays.
pub(crate) struct Part<'a> {
    pub a: &'a mut [f64],
    pub b: &'a mut [f64],
    pub c: &'a mut [f64],
}

impl Arrays {
    /// Arrays of about `array_bytes` each, for `threads`.
    pub(crate) fn new(array_bytes: u64, threads: u32) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let threads = usize::try_from(threads.max(1)).map_err(too_large)?;
        let length = usize::try_from(array_bytes / 8).map_err(too_large)?;
        let part = length.div_ceil(threads).next_multiple_of(GRAIN);
        let length = part * threads;
        let map = || MmapMut::map_anon(length * 8);
        Ok(Self { maps: [map()?, map()?, map()?], length, part })
    }

    /// Size of each array, in bytes.
    pub(crate) fn array_bytes(&self) -> u64 {
        self.length as u64 * 8
    }

    /// The arrays in parts, one a thread.
    pub(crate) fn parts(&mut self) -> impl Iterator<Item = Part<'_>> {
        let (length, part) = (self.length, self.part);
        let [a, b, c] = self.maps.each_mut().map(|map| doubles(map, length).chunks_mut(part));
        a.zip(b).zip(c).map(|((a, b), c)| Part { a, b, c })
    }

    /// Fills each array with its value; each thread touches its own part first, so that its memory
    /// is near its processor.
    pub(crate) fn fill(&mut self, [a, b, c]: [f64; 3]) -> Result<(), RunError> {
        each(self.parts(), |part| {
            part.a.fill(a);
            part.b.fill(b);
            part.c.fill(c);
        })?;
        Ok(())
    }

    /// How many elements do not hold their array's value, to the last bit.
    pub(crate) fn wrong_elements(&mut self, [a, b, c]: [f64; 3]) -> Result<u64, RunError> {
        let wrong = |part: &[f64], value: f64| {
            part.iter().filter(|element| element.to_bits() != value.to_bits()).count() as u64
        };
        let counts = each(self.parts(), |part| wrong(part.a, a) + wrong(part.b, b) + wrong(part.c, c))?;
        Ok(counts.iter().sum())
    }
}

fn doubles(map: &mut MmapMut, length: usize) -> &mut [f64] {
    let start = NonNull::from(&mut map[..]).cast::<f64>();
    // SAFETY: the mapping is page-aligned, was made `length * 8` bytes long and is borrowed for as long
    // as the slice; every bit pattern is a double.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
}

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

/// Which instructions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Simd {
    non_temporal: bool,
    width: Width,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx,
    /// 128 bits: every x86-64 has them.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Whatever the compiler makes of a loop.
    #[cfg(not(target_arch = "x86_64"))]
    Plain,
}

impl Simd {
    /// Stores through the caches.
    pub(crate) fn regular() -> Self {
        Self { non_temporal: false, width: width() }
    }

    /// Stores past the caches, where there are such.
    pub(crate) fn non_temporal() -> Option<Self> {
        cfg!(target_arch = "x86_64").then(|| Self { non_temporal: true, width: width() })
    }

    /// One pass of `kernel` over a part.
    pub(crate) fn pass(self, kernel: MemoryKernel, part: &mut Part<'_>) {
        match self.width {
            // SAFETY: `width` found AVX on this processor.
            #[cfg(target_arch = "x86_64")]
            Width::Avx if self.non_temporal => unsafe { avx::pass::<true>(kernel, part) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Avx => unsafe { avx::pass::<false>(kernel, part) },
            // SAFETY: every x86-64 has SSE2.
            #[cfg(target_arch = "x86_64")]
            Width::Sse2 if self.non_temporal => unsafe { sse2::pass::<true>(kernel, part) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Sse2 => unsafe { sse2::pass::<false>(kernel, part) },
            #[cfg(not(target_arch = "x86_64"))]
            Width::Plain => plain(kernel, part),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn width() -> Width {
    if std::arch::is_x86_feature_detected!("avx") { Width::Avx } else { Width::Sse2 }
}

#[cfg(not(target_arch = "x86_64"))]
fn width() -> Width {
    Width::Plain
}

/// The kernels in one width of vectors: `$lanes` doubles each.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($module:ident, $feature:literal, $lanes:literal, $load:ident, $store:ident, $stream:ident, $set:ident,
     $add:ident, $mul:ident) => {
        mod $module {
            use std::arch::x86_64::{_mm_sfence, $add, $load, $mul, $set, $store, $stream};

            use super::{FACTOR, MemoryKernel, Part};

            /// One pass; stores go past the caches if `NT`.
            ///
            /// # Safety
            /// The processor has the instructions.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn pass<const NT: bool>(kernel: MemoryKernel, part: &mut Part<'_>) {
                let (a, b, c) = (&mut *part.a, &mut *part.b, &mut *part.c);
                let length = a.len();
                // Parts are pages: their lengths are multiples of the lanes, their addresses aligned.
                assert!(length.is_multiple_of($lanes) && b.len() == length && c.len() == length);
                let [a, b, c] = [a, b, c].map(|array| array.as_mut_ptr());
                assert!([a, b, c].iter().all(|array| array.addr().is_multiple_of($lanes * 8)));
                let q = $set(FACTOR);
                for at in (0..length).step_by($lanes) {
                    // SAFETY: `at` and the lanes behind it are within all three arrays, see above.
                    unsafe {
                        let (a, b, c) = (a.add(at), b.add(at), c.add(at));
                        let (to, value) = match kernel {
                            MemoryKernel::Copy => (c, $load(a)),
                            MemoryKernel::Scale => (b, $mul(q, $load(c))),
                            MemoryKernel::Add => (c, $add($load(a), $load(b))),
                            MemoryKernel::Triad => (a, $add($load(b), $mul(q, $load(c)))),
                        };
                        if NT { $stream(to, value) } else { $store(to, value) }
                    }
                }
                if NT {
                    // Others see the stores only behind a fence.
                    _mm_sfence();
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(
    avx,
    "avx",
    4,
    _mm256_load_pd,
    _mm256_store_pd,
    _mm256_stream_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_mul_pd
);

#[cfg(target_arch = "x86_64")]
kernels!(sse2, "sse2", 2, _mm_load_pd, _mm_store_pd, _mm_stream_pd, _mm_set1_pd, _mm_add_pd, _mm_mul_pd);

#[cfg(not(target_arch = "x86_64"))]
fn plain(kernel: MemoryKernel, part: &mut Part<'_>) {
    let Part { a, b, c } = part;
    let elements = a.iter_mut().zip(b.iter_mut()).zip(c.iter_mut());
    elements.for_each(|((a, b), c)| match kernel {
        MemoryKernel::Copy => *c = *a,
        MemoryKernel::Scale => *b = FACTOR * *c,
        MemoryKernel::Add => *c = *a + *b,
        MemoryKernel::Triad => *a = *b + FACTOR * *c,
    });
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod memory_tests;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::memory::{Arrays, after};

    #[test]
    fn all_widths_and_stores_compute_the_same_to_the_last_bit() {
        for width in [width(), Width::Sse2] {
            for non_temporal in [false, true] {
                let simd = Simd { non_temporal, width };
                let mut arrays = Arrays::new(1 << 16, 3).unwrap();
                let mut expected = [1.1, 2.3, 0.0];
                arrays.fill(expected).unwrap();
                for kernel in MemoryKernel::ALL.iter().cycle().take(9) {
                    arrays.parts().for_each(|mut part| simd.pass(*kernel, &mut part));
                    expected = after(*kernel, expected);
                    assert_eq!(arrays.wrong_elements(expected).unwrap(), 0, "{simd:?} {kernel:?}");
                }
            }
        }
    }
}
