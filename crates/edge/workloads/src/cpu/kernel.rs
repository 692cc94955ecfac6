//! What a kernel is, and what kernels check numbers with.

/// A computation with its data.
pub(crate) trait Kernel: Send {
    /// Computes once; returns whether the result is the known one. All data is made from fixed seeds,
    /// so results are known beforehand and a machine that computes wrong is found out.
    fn operation(&mut self) -> bool;
}

/// Whether two numbers agree but for rounding: the sines of two C libraries differ in the last bit.
pub(super) fn agree(found: f64, known: f64) -> bool {
    (found - known).abs() <= 1e-9 * known.abs()
}
