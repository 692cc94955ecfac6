//! What a fence is made of. Every row of the [catalogue](crate::catalogue) is a value of [`Config`].

use crate::config_error::ConfigError;
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

/// Bytes of a cache block (section 7: the block size of the disk's file systems).
pub const BLOCK_BYTES: u64 = 4096;

/// A write-back cache on the fast device (section 6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheConfig {
    /// Identity of this cache: entries of an earlier one on the same device are void. New with every format.
    pub uuid: [u8; 16],
    /// One partition a disk, or one for all.
    pub partitions: CachePartitions,
    /// The background eviction keeps so many blocks of a partition free.
    pub free_target: u32,
    /// With so few free, incoming requests of the partition are halted.
    pub low_watermark: u32,
    /// Blocks of driver's memory a partition may use at once: at most half of them for fills, a quarter for write-backs, and
    /// any for partial writes.
    pub scratch_blocks: u32,
    /// Of each disk, in their order, how many bytes of consecutive writes go through the cache before those that follow go
    /// past it, to the slow device: a sync of that which fails then fails a flush. None does where nothing is given.
    pub bypass_bytes: Vec<Option<u64>>,
}

/// Section 6.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachePartitions {
    /// One for all disks, of so many blocks.
    Shared(u32),
    /// One for each disk, of so many blocks, in the order of the disks.
    PerDisk(Vec<u32>),
}

impl CachePartitions {
    /// Blocks of each partition.
    #[must_use]
    pub fn blocks(&self) -> &[u32] {
        match self {
            Self::Shared(blocks) => std::slice::from_ref(blocks),
            Self::PerDisk(blocks) => blocks,
        }
    }
}

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

impl Config {
    /// Checks that everything fits.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.disks.is_empty() {
            return Err(ConfigError::NoDisks);
        }
        if self.disks.len() > usize::from(u16::MAX) {
            return Err(ConfigError::TooManyDisks(self.disks.len()));
        }
        if self.max_request_bytes == 0
            || !self.max_request_bytes.is_multiple_of(4096)
            || self.max_request_bytes > 1 << 30
        {
            return Err(ConfigError::MaxRequest(self.max_request_bytes));
        }
        if self.slow.depth == 0 || self.fast.depth == 0 {
            return Err(ConfigError::ZeroDepth);
        }
        let device_bytes = match self.backing {
            Backing::Slow | Backing::Cached(_) => self.slow.size_bytes,
            Backing::Fast => self.fast.size_bytes,
        };
        check_partitions(&self.disks, device_bytes)?;
        if let Backing::Cached(cache) = &self.backing {
            cache.validate(self)?;
        }
        self.scheduler.validate(self.disks.len())
    }
}

fn check_partitions(disks: &[DiskConfig], device_bytes: u64) -> Result<(), ConfigError> {
    for (disk, config) in disks.iter().enumerate() {
        let DiskConfig { offset_bytes, size_bytes, .. } = *config;
        if size_bytes == 0 || !size_bytes.is_multiple_of(4096) || !offset_bytes.is_multiple_of(4096) {
            return Err(ConfigError::DiskUnaligned { disk, offset_bytes, size_bytes });
        }
        let end_bytes = offset_bytes.saturating_add(size_bytes);
        if end_bytes > device_bytes {
            return Err(ConfigError::DiskBeyondDevice { disk, end_bytes, device_bytes });
        }
    }
    let neighbours = |key: fn(&DiskConfig) -> u128| {
        let mut order: Vec<usize> = (0..disks.len()).collect();
        order.sort_by_key(|&disk| key(&disks[disk]));
        order.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    };
    for (first, second) in neighbours(|disk| u128::from(disk.offset_bytes)) {
        if disks[first].offset_bytes + disks[first].size_bytes > disks[second].offset_bytes {
            return Err(ConfigError::DisksOverlap { first, second });
        }
    }
    for (first, second) in neighbours(|disk| u128::from_le_bytes(disk.uuid)) {
        if disks[first].uuid == disks[second].uuid {
            return Err(ConfigError::SameIdentity { first, second });
        }
    }
    Ok(())
}
