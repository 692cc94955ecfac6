//! Whether a configuration can be used.

use crate::config::{Backing, Config};
use crate::config_error::ConfigError;
use crate::devices::DiskConfig;

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
