//! What a kernel is, and what kernels check their results with.

/// A computation with its data.
pub(crate) trait Kernel: Send {
    /// Computes once; returns whether the result is the known one. All data is made from fixed seeds,
    /// so results are known beforehand and a machine that computes wrong is found out.
    fn operation(&mut self) -> bool;
}

/// A short fingerprint of bytes.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Whether two numbers agree but for rounding: the sines of two C libraries differ in the last bit.
pub(super) fn agree(found: f64, known: f64) -> bool {
    (found - known).abs() <= 1e-9 * known.abs()
}
