//! The virtual disks and the physical devices, as configured.

/// A virtual disk and the partition of the backing device that it has for itself (section 6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskConfig {
    /// Its identity: a cache of one disk is never taken for another's.
    pub uuid: [u8; 16],
    /// Where on the backing device it begins, a multiple of 4096.
    pub offset_bytes: u64,
    /// Its size, a multiple of 4096.
    pub size_bytes: u64,
}

/// A physical device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Its size; zero for a device that is not there.
    pub size_bytes: u64,
    /// Greatest number of outstanding I/Os, where the scheduler does not set it by batches.
    pub depth: u32,
}
