//! What the kernels compute.

use virtbench_workload::MemoryKernel;

/// The factor of SCALE and TRIAD. With `2 q + q^2 = 1` a round leaves `a` as large as it was, so that
/// any number of rounds neither overflows nor vanishes.
pub(super) const FACTOR: f64 = std::f64::consts::SQRT_2 - 1.0;

/// What the elements of `a`, `b` and `c` hold after passes of a kernel, by the same operations in
/// the same order: to the last bit.
pub(super) fn after(kernel: MemoryKernel, [a, b, c]: [f64; 3]) -> [f64; 3] {
    match kernel {
        MemoryKernel::Copy => [a, b, a],
        MemoryKernel::Scale => [a, FACTOR * c, c],
        MemoryKernel::Add => [a, b, a + b],
        MemoryKernel::Triad => [b + FACTOR * c, b, c],
    }
}
