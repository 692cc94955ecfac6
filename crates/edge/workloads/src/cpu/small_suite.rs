//! In place of `suite` in a build without it: the kernels that need no library.

use virtbench_workload::CpuKernel;

use super::kernel;
use super::kernel::Kernel;

/// Makes a kernel's data; nothing of those that this build leaves out.
pub(crate) fn build(kernel: CpuKernel) -> Option<Box<dyn Kernel>> {
    match kernel {
        CpuKernel::MonteCarlo => Some(Box::new(kernel::MonteCarlo)),
        CpuKernel::Sor => Some(Box::new(kernel::Sor::new())),
        CpuKernel::Sparse => Some(Box::new(kernel::Sparse::new())),
        CpuKernel::Parse
        | CpuKernel::Compress
        | CpuKernel::Aes
        | CpuKernel::Sha
        | CpuKernel::SignVerify
        | CpuKernel::Fft
        | CpuKernel::Lu
        | CpuKernel::Serial
        | CpuKernel::Xml => None,
    }
}
