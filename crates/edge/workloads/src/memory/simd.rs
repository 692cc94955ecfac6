//! The four kernels in vector instructions, with stores through the caches or past them.
//!
//! They are spelled out because a compiler turns a plain COPY into a call of `memcpy`, which decides
//! for itself how to store; then it is the library that is measured.

use virtbench_workload::MemoryKernel;

use super::arithmetic::FACTOR;
use super::arrays::Part;

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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::memory::arithmetic::after;
    use crate::memory::arrays::Arrays;

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
