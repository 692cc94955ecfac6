//! What a kernel is, and which there are.

use virtbench_workload::CpuKernel;

use super::{crypto, dense, grids, language, text};

/// A computation with its data.
pub(crate) trait Kernel: Send {
    /// Computes once; returns whether the result is the known one. All data is made from fixed seeds,
    /// so results are known beforehand and a machine that computes wrong is found out.
    fn operation(&mut self) -> bool;
}

/// Makes a kernel's data.
pub(crate) fn build(kernel: CpuKernel) -> Box<dyn Kernel> {
    match kernel {
        CpuKernel::Parse => Box::new(language::Parse::new()),
        CpuKernel::Compress => Box::new(text::Compress::new()),
        CpuKernel::Aes => Box::new(crypto::Aes::new()),
        CpuKernel::Sha => Box::new(crypto::Sha::new()),
        CpuKernel::SignVerify => Box::new(crypto::SignVerify::new()),
        CpuKernel::Fft => Box::new(dense::Fft::new()),
        CpuKernel::Lu => Box::new(dense::Lu::new()),
        CpuKernel::MonteCarlo => Box::new(grids::MonteCarlo),
        CpuKernel::Sor => Box::new(grids::Sor::new()),
        CpuKernel::Sparse => Box::new(grids::Sparse::new()),
        CpuKernel::Serial => Box::new(text::Serial::new()),
        CpuKernel::Xml => Box::new(text::Xml::new()),
    }
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
