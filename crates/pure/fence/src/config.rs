//! What a fence is made of. Every variant of paper 5, Table 1, and every peer is a value of [`Config`].

use thiserror::Error;

use crate::cache::CacheConfig;
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

/// A configuration that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Nothing to serve.
    #[error("no virtual disks: configure at least one")]
    NoDisks,
    /// More disks than an id can name.
    #[error("{0} virtual disks: at most 65535 share a fence")]
    TooManyDisks(usize),
    /// A disk is not in whole blocks, or empty.
    #[error(
        "disk {disk}: offset {offset_bytes} and size {size_bytes} must be multiples of 4096, the size not 0"
    )]
    DiskUnaligned {
        /// Which.
        disk: usize,
        /// As configured.
        offset_bytes: u64,
        /// As configured.
        size_bytes: u64,
    },
    /// A disk's partition ends behind its device.
    #[error("disk {disk} ends at byte {end_bytes}, its device at {device_bytes}: make it smaller or move it")]
    DiskBeyondDevice {
        /// Which.
        disk: usize,
        /// Where it would end.
        end_bytes: u64,
        /// Where the device ends.
        device_bytes: u64,
    },
    /// Two partitions share bytes.
    #[error("disks {first} and {second} overlap: give each a partition of its own")]
    DisksOverlap {
        /// The one that begins first.
        first: usize,
        /// The other.
        second: usize,
    },
    /// Two disks of one identity.
    #[error("disks {first} and {second} have the same identity")]
    SameIdentity {
        /// One.
        first: usize,
        /// The other.
        second: usize,
    },
    /// A device that may have no I/O outstanding.
    #[error("a device's depth is 0: allow at least one outstanding I/O")]
    ZeroDepth,
    /// Caps, shares or weights are not one a disk.
    #[error("{given} caps, shares or weights for {disks} disks: give one for each")]
    SharesPerDisk {
        /// Given.
        given: usize,
        /// Wanted.
        disks: usize,
    },
    /// A disk that would never be served.
    #[error("disk {disk} has a rate, weight or budget of 0 and would never be served: raise it")]
    ZeroShare {
        /// Which.
        disk: usize,
    },
    /// More is promised than there is.
    #[error(
        "shares add up to more than the whole device, or nothing is reserved: lower the shares, reserve more than 0"
    )]
    SharesBeyondDevice,
    /// More is promised than allowed.
    #[error("disk {disk} reserves more I/Os a second than its limit allows: lower one or raise the other")]
    ReservationOverLimit {
        /// Which.
        disk: usize,
    },
    /// A rotation without slots, slots without length, or batches without I/Os.
    #[error(
        "no slots, slots of 0 ns, or batches of 0: configure at least one slot longer than 0, batches of at least 1"
    )]
    NoSlots,
    /// Its length could not be counted.
    #[error("{slots} slots of {slot_ns} ns: make them fewer or shorter, 2^62 ns together at most")]
    RotationTooLong {
        /// In the rotation.
        slots: usize,
        /// As configured.
        slot_ns: u64,
    },
    /// Not even one fast I/O fits.
    #[error(
        "slots of {slot_ns} ns cannot hold one I/O of the fast device, predicted at {needs_ns} ns: make them longer"
    )]
    SlotTooShort {
        /// As configured.
        slot_ns: u64,
        /// Predicted.
        needs_ns: u64,
    },
    /// A slot belongs to a disk that is not there.
    #[error("slot {slot} belongs to disk {disk}, which is not configured")]
    SlotOwnerUnknown {
        /// Which slot.
        slot: usize,
        /// Its owner.
        disk: usize,
    },
    /// A disk that would never be served.
    #[error("disk {disk} has none of the {slots} slots: give it one, or add a shared slot")]
    DiskWithoutSlot {
        /// Which.
        disk: usize,
        /// In the rotation.
        slots: usize,
    },
    /// A partition a disk was asked for, and not given.
    #[error("{partitions} cache partitions for {disks} disks: configure one a disk, or a shared one")]
    CachePartitions {
        /// Given.
        partitions: usize,
        /// Wanted.
        disks: usize,
    },
    /// Requests could wait for ever.
    #[error(
        "eviction keeps {free_target} blocks free, requests halt at {low_watermark}: there must be {request} between \
         for the longest request, and scratch of at least 1 block"
    )]
    Watermarks {
        /// As configured.
        free_target: u32,
        /// As configured.
        low_watermark: u32,
        /// Blocks of the longest request.
        request: u32,
    },
    /// A partition without room for what is to be free and one request.
    #[error("cache partition {partition} of {blocks} blocks: make it {needs} to 2^31 blocks")]
    CacheSize {
        /// Which.
        partition: usize,
        /// As configured.
        blocks: u32,
        /// At least.
        needs: u32,
    },
    /// The partitions and their metadata are larger than the device.
    #[error(
        "the cache needs {needs_bytes} bytes with its metadata, the fast device has {device_bytes}: make it smaller"
    )]
    CacheBeyondDevice {
        /// With metadata.
        needs_bytes: u64,
        /// There are.
        device_bytes: u64,
    },
    /// The longest request is nothing or not in blocks.
    #[error("longest request of {0} bytes: use a multiple of 4096 up to 1 GiB")]
    MaxRequest(u32),
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

impl SchedulerConfig {
    pub(crate) fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        let each = |given: usize| {
            if given == disks { Ok(()) } else { Err(ConfigError::SharesPerDisk { given, disks }) }
        };
        match self {
            Self::Fifo | Self::Elevator => Ok(()),
            Self::TokenBucket(caps) => {
                let zero = |cap: &Cap| cap.iops == Some(0) || cap.bytes_per_s == Some(0);
                each(caps.len())?;
                caps.iter().position(zero).map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
            }
            Self::MClock(shares) => {
                let zero = |shares: &Shares| shares.limit_iops == 0 || shares.weight == 0;
                each(shares.len())?;
                if let Some(disk) =
                    shares.iter().position(|shares| shares.reservation_iops > shares.limit_iops)
                {
                    return Err(ConfigError::ReservationOverLimit { disk });
                }
                shares.iter().position(zero).map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
            }
            Self::FairQueue(fair) => {
                each(fair.weights.len())?;
                let zero = fair.weights.iter().position(|&weight| weight == 0);
                zero.or((fair.budget_sectors == 0).then_some(0))
                    .map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
            }
            Self::Cfq(cfq) => each(cfq.processes.len()),
            Self::Slots(slots) => slots.validate(disks),
            Self::Paced(paced) => paced.validate(disks),
        }
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
