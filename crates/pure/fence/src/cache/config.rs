//! How the fast device caches the slow one.

use crate::config::{Config, ConfigError};

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

impl CacheConfig {
    pub(crate) fn validate(&self, config: &Config) -> Result<(), ConfigError> {
        let blocks = self.partitions.blocks();
        if matches!(self.partitions, CachePartitions::PerDisk(_)) && blocks.len() != config.disks.len() {
            return Err(ConfigError::CachePartitions { partitions: blocks.len(), disks: config.disks.len() });
        }
        if config.disks.len() > super::metadata::MOST_DISKS {
            return Err(ConfigError::TooManyDisks(config.disks.len()));
        }
        let request = config.max_request_bytes / 4096 + 1;
        if self.scratch_blocks == 0 || self.free_target < self.low_watermark.saturating_add(request) {
            return Err(ConfigError::Watermarks {
                free_target: self.free_target,
                low_watermark: self.low_watermark,
                request,
            });
        }
        let needs = self.free_target.saturating_add(request);
        if let Some(partition) = blocks.iter().position(|&blocks| blocks < needs || blocks > u32::MAX / 2) {
            return Err(ConfigError::CacheSize { partition, blocks: blocks[partition], needs });
        }
        let needs_bytes = super::metadata::Layout::new(blocks).end_bytes;
        if needs_bytes > config.fast.size_bytes {
            return Err(ConfigError::CacheBeyondDevice { needs_bytes, device_bytes: config.fast.size_bytes });
        }
        Ok(())
    }
}
