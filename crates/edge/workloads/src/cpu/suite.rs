//! Which kernels there are.

use virtbench_workload::CpuKernel;

use super::kernel::Kernel;
use super::{crypto, dense, kernel, text};

/// Makes a kernel's data. This build has all.
#[allow(clippy::unnecessary_wraps, reason = "a build without the suite has not all of them")]
pub(crate) fn build(kernel: CpuKernel) -> Option<Box<dyn Kernel>> {
    Some(match kernel {
        CpuKernel::Parse => Box::new(text::Parse::new()),
        CpuKernel::Compress => Box::new(text::Compress::new()),
        CpuKernel::Aes => Box::new(crypto::Aes::new()),
        CpuKernel::Sha => Box::new(crypto::Sha::new()),
        CpuKernel::SignVerify => Box::new(crypto::SignVerify::new()),
        CpuKernel::Fft => Box::new(dense::Fft::new()),
        CpuKernel::Lu => Box::new(dense::Lu::new()),
        CpuKernel::MonteCarlo => Box::new(kernel::MonteCarlo),
        CpuKernel::Sor => Box::new(kernel::Sor::new()),
        CpuKernel::Sparse => Box::new(kernel::Sparse::new()),
        CpuKernel::Serial => Box::new(text::Serial::new()),
        CpuKernel::Xml => Box::new(text::Xml::new()),
    })
}
