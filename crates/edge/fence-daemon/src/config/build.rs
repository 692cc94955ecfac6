//! From a configuration and the devices' sizes to a fence.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use virtbench_fence::cache::{CacheConfig, CachePartitions};
use virtbench_fence::{Backing, Config as FenceConfig, ConfigError, DeviceConfig, DiskConfig};

use super::key_error::{KeyError, PathPart};
use super::scheduler::{Home, home, scheduler};
use super::{Config, DiskTable};
use crate::frontend::nbd::Listen;
use crate::metrics::{Alone, Watched};

/// Room at the beginning of the device that virtual disks live on, for its label.
pub const LABEL_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 4096;
/// Every partition begins at a multiple.
const ALIGN_BYTES: u64 = 1 << 20;

/// Which devices a configuration uses, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Built {
    /// Virtual disks live on the slow device.
    Slow,
    /// They live on the fast one.
    Fast,
    /// They live on the slow one behind a cache on the fast one.
    Cached {
        /// One cache for all.
        shared: bool,
    },
}

impl Config {
    /// Where its virtual disks live.
    ///
    /// # Errors
    /// A device that is needed is not given.
    pub fn home(&self) -> Result<Built, String> {
        let (slow, fast) = (self.slow.is_some(), self.fast.is_some());
        let lacks = |what: &str| {
            let name = self.scheduler.name.name;
            let table = self.table(what);
            Err(format!("scheduler.name {name:?} needs {table}: give that device, or take another scheduler"))
        };
        match home(self.scheduler.name) {
            Home::Slow if slow => Ok(Built::Slow),
            Home::Fast if fast => Ok(Built::Fast),
            Home::Slow => lacks("slow"),
            Home::Fast => lacks("fast"),
            Home::Cached { .. } if !slow => lacks("slow"),
            Home::Cached { .. } if !fast => lacks("fast"),
            Home::Cached { shared } => Ok(Built::Cached { shared }),
            Home::Any => match (slow, fast) {
                (true, true) => Ok(Built::Cached { shared: false }),
                (true, false) => Ok(Built::Slow),
                (false, true) => Ok(Built::Fast),
                (false, false) => {
                    let [slow, fast] = ["slow", "fast"].map(|what| self.table(what));
                    Err(format!("no device: give {slow}, {fast} or both"))
                }
            },
        }
    }

    /// A table of this fence as its file has it.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        self.pool.as_ref().map_or_else(|| format!("[{name}]"), |pool| format!("[pool.{pool}.{name}]"))
    }

    /// The socket by which a running daemon gets changes.
    #[must_use]
    pub fn control_socket(&self) -> Option<PathBuf> {
        let listens = |listen: &Listen| match listen {
            Listen::Unix(path) => Some(path.clone()),
            Listen::Tcp(_) => None,
        };
        let over_nbd = || self.nbd.iter().flat_map(|nbd| &nbd.listen).find_map(listens);
        let beside = || {
            let mut path = self.disks.iter().find_map(|disk| disk.socket.clone()).or_else(over_nbd)?;
            path.as_mut_os_string().push(".control");
            Some(path)
        };
        self.control.clone().or_else(beside)
    }

    /// Checks what a parser does not see.
    ///
    /// # Errors
    /// The key, what is wrong with it, and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.within_bounds().map_err(|number| number.to_string())?;
        self.check_pools().map_err(|key| key.to_string())?;
        if self.pools.is_empty() {
            return self.check_fence();
        }
        self.fences().iter().try_for_each(|fence| {
            let of = |message| format!("pool {}: {message}", fence.pool.as_deref().unwrap_or_default());
            fence.check_fence().map_err(of)
        })
    }

    /// One fence, or one of several.
    fn check_fence(&self) -> Result<(), String> {
        let home = self.home()?;
        if self.disks.is_empty() {
            return Err("no [[disk]]: give at least one".into());
        }
        self.disks_are_told_apart().map_err(|key| key.to_string())?;
        for (place, disk) in self.disks.iter().enumerate() {
            let name = &disk.name;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                return Err(format!(
                    "disk {place}: name {name:?}: use 1 to 64 letters, digits, '-', '_' or '.'"
                ));
            }
            if disk.socket.is_none() && disk.export.is_none() {
                return Err(format!("disk {name}: nobody can reach it: give it a socket or an export"));
            }
            if disk.export.is_some() && self.nbd.is_none() {
                return Err(format!("disk {name}: it has an export, but there is no {}", self.table("nbd")));
            }
            if disk.size.0 == 0 || !disk.size.0.is_multiple_of(BLOCK_BYTES) {
                return Err(format!("disk {name}: size {} is not a multiple of 4096", disk.size.0));
            }
            if !(1..=64).contains(&disk.queues) {
                return Err(format!("disk {name}: queues {}: use 1 to 64", disk.queues));
            }
            let alone = [("alone_iops", disk.alone_iops), ("alone_response_ms", disk.alone_response_ms)];
            let cannot_be = |value: f64| !(value.is_finite() && value > 0.0);
            if let Some((key, value)) = alone.iter().find(|(_, value)| value.is_some_and(cannot_be)) {
                let value = value.unwrap_or_default();
                return Err(format!("disk {name}: {key} {value}: give what it has alone, above 0"));
            }
            if matches!(home, Built::Cached { .. }) && disk.cache.is_none() {
                return Err(format!("disk {name}: no cache: say how much of the fast device it may use"));
            }
            if !matches!(home, Built::Cached { .. }) && disk.bypass.is_some() {
                return Err(format!(
                    "disk {name}: bypass: it has no cache to pass by: remove the key, or give [slow], [fast] and a scheduler \
                     with a cache"
                ));
            }
        }
        if let Some(nbd) = &self.nbd {
            nbd.check()?;
        }
        let limits = &self.limits;
        if !(1..=65536).contains(&limits.requests_per_disk) {
            return Err(format!("limits.requests_per_disk {}: use 1 to 65536", limits.requests_per_disk));
        }
        let max = limits.max_request.0;
        if !(4096..=16 << 20).contains(&max) || !max.is_multiple_of(4096) {
            return Err(format!("limits.max_request {max}: use a multiple of 4096 up to 16 MiB"));
        }
        if let Some(address) = self.metrics.filter(|address| !address.ip().is_loopback()) {
            return Err(format!("metrics {address}: figures are served on loopback only"));
        }
        Ok(())
    }

    /// No two disks have one name, socket or export, whatever pools they are in.
    pub(super) fn disks_are_told_apart(&self) -> Result<(), KeyError> {
        for (place, disk) in self.disks.iter().enumerate() {
            let has = |same: &dyn Fn(&DiskTable) -> bool| self.disks[..place].iter().any(same);
            let says = if has(&|other| other.name == disk.name) {
                "there are two of that name"
            } else if disk.socket.is_some() && has(&|other| other.socket == disk.socket) {
                "its socket is another's too: give each its own"
            } else if disk.export.is_some() && has(&|other| other.export == disk.export) {
                "its export is another's too: give each its own"
            } else {
                continue;
            };
            return Err(KeyError {
                path: vec![PathPart::Disk(place, disk.name.clone())],
                says: says.to_owned(),
            });
        }
        Ok(())
    }

    /// The core's configuration. `label` is the identity of the device that disks live on, `cache` that of the cache.
    ///
    /// # Errors
    /// What the core refuses.
    pub fn fence(
        &self,
        home: Built,
        sizes: [u64; 2],
        label: &[u8; 16],
        cache: [u8; 16],
    ) -> Result<FenceConfig, ConfigError> {
        self.fence_of(home, sizes, self.place(label), cache)
    }

    /// The same with disks that are where they are.
    ///
    /// # Errors
    /// What the core refuses.
    pub fn fence_of(
        &self,
        home: Built,
        sizes: [u64; 2],
        disks: Vec<DiskConfig>,
        cache: [u8; 16],
    ) -> Result<FenceConfig, ConfigError> {
        let depth = |device: &Option<super::DeviceTable>| match device {
            _ if self.scheduler.name.unlimited_depth => u32::MAX,
            Some(device) => device.depth,
            None => 1,
        };
        let backing = match home {
            Built::Slow => Backing::Slow,
            Built::Fast => Backing::Fast,
            Built::Cached { shared } => Backing::Cached(CacheConfig {
                uuid: cache,
                partitions: self.partitions(shared),
                free_target: self.cache.free_target,
                low_watermark: self.cache.low_watermark,
                scratch_blocks: self.cache.scratch_blocks,
                bypass_bytes: self.disks.iter().map(|disk| disk.bypass.map(|size| size.0)).collect(),
            }),
        };
        let config = FenceConfig {
            disks,
            slow: DeviceConfig { size_bytes: sizes[0], depth: depth(&self.slow) },
            fast: DeviceConfig { size_bytes: sizes[1], depth: depth(&self.fast) },
            backing,
            scheduler: scheduler(self),
            max_request_bytes: u32::try_from(self.limits.max_request.0).unwrap_or(u32::MAX),
        };
        config.validate()?;
        Ok(config)
    }

    /// Disks side by side behind the label, in their order, each at a whole MiB.
    #[must_use]
    pub fn place(&self, label: &[u8; 16]) -> Vec<DiskConfig> {
        let mut at = LABEL_BYTES;
        let mut place = |disk: &DiskTable| {
            let offset_bytes = at;
            let size_bytes = disk.size.0;
            at = at.saturating_add(size_bytes.next_multiple_of(ALIGN_BYTES));
            DiskConfig { uuid: identity(label, &disk.name), offset_bytes, size_bytes }
        };
        self.disks.iter().map(&mut place).collect()
    }

    /// Data blocks of each partition of the cache.
    #[must_use]
    pub fn cache_blocks(&self, home: Built) -> Vec<u32> {
        match home {
            Built::Cached { shared } => self.partitions(shared).blocks().to_vec(),
            Built::Slow | Built::Fast => Vec::new(),
        }
    }

    /// The disks to those who count.
    pub(crate) fn watched(&self) -> impl Iterator<Item = Watched> {
        self.disks.iter().map(|disk| {
            let response_s = disk.alone_response_ms.map(|ms| ms / 1e3);
            Watched { name: disk.name.clone(), alone: Alone { iops: disk.alone_iops, response_s } }
        })
    }

    fn partitions(&self, shared: bool) -> CachePartitions {
        let blocks = |bytes: u64| u32::try_from(bytes / BLOCK_BYTES).unwrap_or(u32::MAX);
        let each = self.disks.iter().map(|disk| disk.cache.map_or(0, |size| size.0));
        if shared {
            CachePartitions::Shared(blocks(each.fold(0, u64::saturating_add)))
        } else {
            CachePartitions::PerDisk(each.map(blocks).collect())
        }
    }
}

/// A virtual disk is what the label of its device and its name say: the same name on another device is another disk.
fn identity(label: &[u8; 16], name: &str) -> [u8; 16] {
    let hash = Sha256::new().chain_update(label).chain_update(name).finalize();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash[..16]);
    uuid
}
