//! What a fence is made of. Every row of the [catalogue](crate::catalogue) is a value of [`Config`].

use crate::cache_config::CacheConfig;
use crate::devices::{DeviceConfig, DiskConfig};
use crate::schedulers::SchedulerConfig;

/// A whole fence.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The virtual disks; a disk's place is its [`DiskId`](crate::DiskId).
    pub disks: Vec<DiskConfig>,
    /// The slow device.
    pub slow: DeviceConfig,
    /// The fast device.
    pub fast: DeviceConfig,
    /// Where the virtual disks live.
    pub backing: Backing,
    /// Who is served when.
    pub scheduler: SchedulerConfig,
    /// Longest request in bytes, a multiple of 4096; a longer one fails.
    pub max_request_bytes: u32,
}

/// Where the virtual disks live.
#[derive(Debug, Clone, PartialEq)]
pub enum Backing {
    /// On the slow device alone.
    Slow,
    /// On the fast device alone.
    Fast,
    /// On the slow device, cached by the fast one.
    Cached(CacheConfig),
}
