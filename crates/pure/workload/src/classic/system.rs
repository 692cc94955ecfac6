//! What the kernel does for applications, piece by piece: system calls, copying, files, waiting for the disk.

use serde::{Deserialize, Serialize};
use virtbench_units::format_duration_ns;

use super::bounds::{WorkloadError, check};

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
