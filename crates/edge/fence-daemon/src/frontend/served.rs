//! A virtual disk, as front ends serve it.

use virtbench_fence::DiskId;

/// What a front end serves.
#[derive(Debug, Clone)]
pub struct Served {
    /// Which virtual disk.
    pub disk: DiskId,
    /// Its name, for the guest and for log lines.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What requests are multiples of, in bytes.
    pub block_bytes: u32,
    /// Rings of a vhost-user device.
    pub queues: u16,
    /// Writes are refused.
    pub read_only: bool,
    /// What it is called over NBD.
    pub export: Option<String>,
}
