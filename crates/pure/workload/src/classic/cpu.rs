//! A suite of computations, one for each kind of SPECjvm2008's ([Multi-VM 2010], section 3).

use serde::{Deserialize, Serialize};
use virtbench_units::format_duration_ns;

use super::bounds::{WorkloadError, check};

/// One computation. In brackets what it stands for in SPECjvm2008.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuKernel {
    /// Parses program text into a syntax tree (compiler).
    Parse,
    /// Compresses and expands text (compress).
    Compress,
    /// Encrypts and decrypts with AES-128 in counter mode (crypto.aes).
    Aes,
    /// Hashes with SHA-256 (the digests of crypto.signverify).
    Sha,
    /// Signs and verifies with Ed25519 (crypto.rsa and crypto.signverify).
    SignVerify,
    /// Fast Fourier transform there and back (scimark.fft).
    Fft,
    /// Decomposes a dense matrix and solves with it (scimark.lu).
    Lu,
    /// Estimates pi by throwing points (scimark.monte_carlo).
    MonteCarlo,
    /// Successive over-relaxation on a grid (scimark.sor).
    Sor,
    /// Multiplies a sparse matrix with a vector (scimark.sparse).
    Sparse,
    /// Writes and reads records as JSON (serial).
    Serial,
    /// Reads and writes a document (xml).
    Xml,
}

impl CpuKernel {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 12] = [
        Self::Parse,
        Self::Compress,
        Self::Aes,
        Self::Sha,
        Self::SignVerify,
        Self::Fft,
        Self::Lu,
        Self::MonteCarlo,
        Self::Sor,
        Self::Sparse,
        Self::Serial,
        Self::Xml,
    ];

    /// Its name in the notation and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Compress => "compress",
            Self::Aes => "aes",
            Self::Sha => "sha",
            Self::SignVerify => "sign-verify",
            Self::Fft => "fft",
            Self::Lu => "lu",
            Self::MonteCarlo => "monte-carlo",
            Self::Sor => "sor",
            Self::Sparse => "sparse",
            Self::Serial => "serial",
            Self::Xml => "xml",
        }
    }
}

/// The suite, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuSpec {
    /// Threads, each with its own data; 0 for one on each processor.
    pub threads: u32,
    /// How long each kernel is repeated in a run, in nanoseconds.
    pub kernel_ns: u64,
    /// Which kernels, in this order.
    pub kernels: Vec<CpuKernel>,
}

impl Default for CpuSpec {
    fn default() -> Self {
        Self { threads: 0, kernel_ns: 1_000_000_000, kernels: CpuKernel::ALL.to_vec() }
    }
}

impl CpuSpec {
    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        if self.kernels.is_empty() {
            return Err(WorkloadError::Nothing { key: "kernels" });
        }
        check("kernel", self.kernel_ns, 1_000_000, 3_600_000_000_000, format_duration_ns)
    }
}
