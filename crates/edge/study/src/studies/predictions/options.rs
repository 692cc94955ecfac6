//! What applications are measured with.

use std::path::PathBuf;

use crate::guests::GuestOptions;

/// The VM that applications are run in.
#[derive(Debug, Clone)]
pub struct VmOptions {
    /// Its processors, memory, kernel and accelerator.
    pub guest: GuestOptions,
    /// Size of its disk, in bytes.
    pub disk_bytes: u64,
    /// Adapter of its disk.
    pub adapter: String,
    /// File system on its disk, `ext4` or `xfs`.
    pub filesystem: String,
    /// Folder for its disk: the storage under it is what is measured, natively too.
    pub folder: PathBuf,
    /// How long a command may take there, in nanoseconds.
    pub limit_ns: u64,
    /// Reference applications as TOML, instead of those that virtbench brings along.
    pub references: Option<String>,
}
