//! Whether a cache fits its disks and its device.

use super::metadata::{Layout, MOST_DISKS};
use crate::config::{CacheConfig, CachePartitions, Config};
use crate::config_error::ConfigError;

impl CacheConfig {
    pub(crate) fn validate(&self, config: &Config) -> Result<(), ConfigError> {
        let blocks = self.partitions.blocks();
        if matches!(self.partitions, CachePartitions::PerDisk(_)) && blocks.len() != config.disks.len() {
            return Err(ConfigError::CachePartitions { partitions: blocks.len(), disks: config.disks.len() });
        }
        if config.disks.len() > MOST_DISKS {
            return Err(ConfigError::TooManyCachedDisks(config.disks.len()));
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
        let needs_bytes = Layout::new(blocks).end_bytes;
        if needs_bytes > config.fast.size_bytes {
            return Err(ConfigError::CacheBeyondDevice { needs_bytes, device_bytes: config.fast.size_bytes });
        }
        Ok(())
    }
}
