//! What a fence is made of. Every variant of paper 5, Table 1, and every peer is a value of [`Config`].

use crate::cache::CacheConfig;
use crate::devices::{DeviceConfig, DiskConfig};
use crate::paced::PacedConfig;
use crate::peers::{Cap, CfqConfig, FairConfig, Shares};
use crate::slots::SlotsConfig;

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

/// Who is served when.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulerConfig {
    /// First in, first out.
    Fifo,
    /// The circular elevator, C-SCAN.
    Elevator,
    /// A cap on each disk, in the order of the disks.
    TokenBucket(Vec<Cap>),
    /// Reservation, limit and weight of each disk.
    MClock(Vec<Shares>),
    /// Budgets of sectors, as BFQ.
    FairQueue(FairConfig),
    /// Slices of time for each process, as Linux's CFQ.
    Cfq(CfqConfig),
    /// Time slots that are not work-conserving (section 6.3).
    Slots(SlotsConfig),
    /// A virtual device for each disk, and answers when they are due.
    Paced(PacedConfig),
}
