//! Classic workloads of each kind, and the limits that their figures are held against.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::{format_bytes, format_duration_ns};

use crate::files::FileLoadError;

/// The most words of a command.
const MAX_WORDS: usize = 4096;

/// A program with its arguments, run in a folder on the storage that is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandSpec {
    /// The program, as a path or a name looked up on the search path, and its arguments.
    pub words: Vec<String>,
    /// The most of what it prints that is kept, in bytes, from the end.
    pub output_bytes: u32,
}

impl CommandSpec {
    /// The command, with 64 KiB of its output.
    #[must_use]
    pub fn new(words: Vec<String>) -> Self {
        Self { words, output_bytes: 64 << 10 }
    }

    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        let possible = |word: &String| !word.contains('\0');
        let has_program = self.words.first().is_some_and(|program| !program.is_empty());
        if !has_program || self.words.len() > MAX_WORDS || !self.words.iter().all(possible) {
            return Err(WorkloadError::Nothing { key: "command" });
        }
        check("output", self.output_bytes.into(), 0, 1 << 20, virtbench_units::format_bytes)
    }
}

/// A workload that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// A figure outside its limits.
    #[error("{key}={value} is outside {least} to {most}")]
    Range {
        /// The key to change.
        key: &'static str,
        /// What was given.
        value: String,
        /// The least allowed.
        least: String,
        /// The most allowed.
        most: String,
    },
    /// A load on files.
    #[error(transparent)]
    Files(#[from] FileLoadError),
    /// Nothing is left to do.
    #[error("{key} names nothing to run: leave it out for all")]
    Nothing {
        /// The key to change.
        key: &'static str,
    },
}

/// Holds a figure against its limits; `words` writes it as the notation does.
pub(super) fn check(
    key: &'static str,
    value: u64,
    least: u64,
    most: u64,
    words: fn(u64) -> String,
) -> Result<(), WorkloadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::Range { key, value: words(value), least: words(least), most: words(most) })
}

pub(super) fn plain(value: u64) -> String {
    value.to_string()
}

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

/// How results are written to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stores {
    /// Through the caches, as compiled code does: a line is read before it is written.
    Regular,
    /// Past the caches, with non-temporal stores.
    NonTemporal,
    /// Both, one after the other.
    #[default]
    Both,
}

/// What is done with the arrays `a`, `b` and `c` of doubles, in STREAM's naming and order. `q` is a
/// constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKernel {
    /// `c = a`
    Copy,
    /// `b = q c`
    Scale,
    /// `c = a + b`
    Add,
    /// `a = b + q c`
    Triad,
}

impl MemoryKernel {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// Bytes that STREAM counts for each element: those the program reads and writes. What the
    /// processor reads in order to write a part of a line is not counted.
    #[must_use]
    pub fn bytes_per_element(self) -> u64 {
        match self {
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }
}

/// Memory throughput, on arrays much larger than any cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemorySpec {
    /// Threads, each with its share of the arrays; 0 for one on each processor.
    pub threads: u32,
    /// Size of each of the three arrays, in bytes; 0 for four times the last-level cache, less where
    /// memory is short.
    pub array_bytes: u64,
    /// How long each kernel is repeated in a run, in nanoseconds.
    pub kernel_ns: u64,
    /// How results are written.
    pub stores: Stores,
}

impl Default for MemorySpec {
    fn default() -> Self {
        Self { threads: 0, array_bytes: 0, kernel_ns: 300_000_000, stores: Stores::Both }
    }
}

impl MemorySpec {
    /// The smallest array, in bytes; the largest is a matter of the machine's memory.
    pub const MIN_ARRAY_BYTES: u64 = 64 << 10;

    /// How long one run takes, in nanoseconds.
    pub(super) fn run_ns(&self) -> u64 {
        let variants = if self.stores == Stores::Both { 2 } else { 1 };
        self.kernel_ns.saturating_mul(variants * MemoryKernel::ALL.len() as u64)
    }

    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        if self.array_bytes != 0 {
            check("array", self.array_bytes, Self::MIN_ARRAY_BYTES, 1 << 42, format_bytes)?;
        }
        check("kernel", self.kernel_ns, 1_000_000, 3_600_000_000_000, format_duration_ns)
    }
}

/// One thing that kernels do for applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SystemKernel {
    /// A system call that does nothing.
    Call,
    /// Reads one byte of a file in memory.
    Read,
    /// Asks for the facts of a file by its name.
    Stat,
    /// Opens and closes a file.
    Open,
    /// Makes a file, writes a block to it, and removes it.
    Create,
    /// Overwrites a block of a file in memory.
    Write,
    /// Makes a file of 64 KiB, and removes it.
    Fill,
    /// Gives a file another name.
    Rename,
    /// Makes a folder, and removes it.
    Folder,
    /// Reads the names in a folder of 64 files.
    List,
    /// Hands a byte to another thread and back, through pipes.
    Switch,
    /// Hands a kilobyte to another thread and back, through sockets that both wait at.
    Talk,
    /// Makes a process that ends at once, and waits for its end.
    Fork,
    /// Maps a page, touches it, and gives it back.
    Fault,
    /// Maps 64 pages, touches them, and gives them back.
    Faults,
    /// Reads 64 KiB of a file in memory.
    CopyOut,
    /// Writes 64 KiB to a file in memory.
    CopyIn,
    /// Overwrites a block of a file and waits until it is stable.
    Flush,
    /// Makes a file, writes a block, waits until both are stable, and removes the file.
    FlushNew,
}

/// What the time of a [`SystemKernel`] mostly depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemPart {
    /// Kernel code.
    Code,
    /// Moving bytes.
    Copy,
    /// Waiting for the disk.
    Wait,
}

impl SystemKernel {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 19] = [
        Self::Call,
        Self::Read,
        Self::Stat,
        Self::Open,
        Self::Create,
        Self::Write,
        Self::Fill,
        Self::Rename,
        Self::Folder,
        Self::List,
        Self::Switch,
        Self::Talk,
        Self::Fork,
        Self::Fault,
        Self::Faults,
        Self::CopyOut,
        Self::CopyIn,
        Self::Flush,
        Self::FlushNew,
    ];

    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Stat => "stat",
            Self::Open => "open",
            Self::Create => "create",
            Self::Write => "write",
            Self::Fill => "fill",
            Self::Rename => "rename",
            Self::Folder => "folder",
            Self::List => "list",
            Self::Switch => "switch",
            Self::Talk => "talk",
            Self::Fork => "fork",
            Self::Fault => "fault",
            Self::Faults => "faults",
            Self::CopyOut => "copy-out",
            Self::CopyIn => "copy-in",
            Self::Flush => "flush",
            Self::FlushNew => "flush-new",
        }
    }

    /// What it stands for.
    #[must_use]
    pub fn part(self) -> SystemPart {
        match self {
            Self::CopyOut | Self::CopyIn => SystemPart::Copy,
            Self::Flush | Self::FlushNew => SystemPart::Wait,
            _ => SystemPart::Code,
        }
    }
}

/// The suite; one thread, since what a call costs is asked, not how calls get into each other's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SystemSpec {
    /// How long each is repeated in a run, in nanoseconds.
    pub kernel_ns: u64,
    /// Which, in this order.
    pub kernels: Vec<SystemKernel>,
}

impl Default for SystemSpec {
    fn default() -> Self {
        Self { kernel_ns: 500_000_000, kernels: SystemKernel::ALL.to_vec() }
    }
}

impl SystemSpec {
    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        if self.kernels.is_empty() {
            return Err(WorkloadError::Nothing { key: "kernels" });
        }
        check("kernel", self.kernel_ns, 1_000_000, 3_600_000_000_000, format_duration_ns)
    }
}
