//! Schedulers by name: the variants of paper 5's Table 1, their peers, and our own.

use serde::Deserialize;
use virtbench_fence::paced::{Class, Due, PacedConfig};
use virtbench_fence::peers::{Cap, FairConfig, Shares};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::slots::{SlotOwner, SlotsConfig};
use virtbench_fence::{DiskId, SchedulerConfig};

use super::{Config, DiskTable, PredictTable, SchedulerTable};

/// A scheduler. Those of Table 1 say where disks live as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// Table 1: the slow device, slots.
    #[serde(rename = "HDD+NWC")]
    HddSlots,
    /// Table 1: the fast device, slots.
    #[serde(rename = "SSD+NWC")]
    SsdSlots,
    /// Table 1: one cache for all, no slots.
    #[serde(rename = "Hybrid/Shared")]
    HybridShared,
    /// Table 1: one cache for all, slots.
    #[serde(rename = "Hybrid/Shared+NWC")]
    HybridSharedSlots,
    /// Table 1: a cache for each, no slots.
    #[serde(rename = "Hybrid/Partitioned")]
    HybridPartitioned,
    /// Table 1: a cache for each, slots.
    #[serde(rename = "VirtualFence")]
    VirtualFence,
    /// First in, first out, as deep as the devices are configured.
    Fifo,
    /// The circular elevator.
    Elevator,
    /// Caps.
    TokenBucket,
    /// Reservations, limits and weights.
    Mclock,
    /// Budgets of sectors.
    FairQueue,
    /// Virtual devices in place of slots: a cache for each.
    Paced,
    /// Everything at once.
    PassThrough,
}

/// Where virtual disks live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    Slow,
    Fast,
    /// With one cache for all, or one for each.
    Cached {
        shared: bool,
    },
    /// On what there is: a cache for each with two devices.
    Any,
}

/// What a fair queue lets a disk do before another's turn, in sectors: what CFQ's slice of 100 ms lets through.
const FAIR_SECTORS: u64 = 2048;
/// How long it waits for a disk's next request (`slice_idle`).
const FAIR_IDLE_NS: u64 = 8_000_000;

impl SchedulerName {
    /// All of them, by the names that a configuration gives them.
    pub const ALL: [(&'static str, Self); 13] = [
        ("HDD+NWC", Self::HddSlots),
        ("SSD+NWC", Self::SsdSlots),
        ("Hybrid/Shared", Self::HybridShared),
        ("Hybrid/Shared+NWC", Self::HybridSharedSlots),
        ("Hybrid/Partitioned", Self::HybridPartitioned),
        ("VirtualFence", Self::VirtualFence),
        ("fifo", Self::Fifo),
        ("elevator", Self::Elevator),
        ("token-bucket", Self::TokenBucket),
        ("mclock", Self::Mclock),
        ("fair-queue", Self::FairQueue),
        ("paced", Self::Paced),
        ("pass-through", Self::PassThrough),
    ];

    /// The one of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, found)| found)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

    /// Whether it has nothing to do without the slow device; the fast one takes its place where it is free to choose.
    #[must_use]
    pub const fn needs_slow(self) -> bool {
        !matches!(self.home(), Home::Fast)
    }

    /// Whether it has nothing to do without the fast device.
    #[must_use]
    pub const fn needs_fast(self) -> bool {
        matches!(self.home(), Home::Fast | Home::Cached { .. })
    }

    /// Whether it divides time into slots that are not work-conserving.
    #[must_use]
    pub const fn has_slots(self) -> bool {
        matches!(self, Self::HddSlots | Self::SsdSlots | Self::HybridSharedSlots | Self::VirtualFence)
    }

    pub(super) const fn home(self) -> Home {
        match self {
            Self::HddSlots => Home::Slow,
            Self::SsdSlots => Home::Fast,
            Self::HybridShared | Self::HybridSharedSlots => Home::Cached { shared: true },
            Self::HybridPartitioned | Self::VirtualFence => Home::Cached { shared: false },
            Self::Fifo
            | Self::Elevator
            | Self::TokenBucket
            | Self::Mclock
            | Self::FairQueue
            | Self::Paced
            | Self::PassThrough => Home::Any,
        }
    }
}

/// The scheduler of a configuration that has been checked.
pub(super) fn scheduler(config: &Config) -> SchedulerConfig {
    let SchedulerTable { name, predict, .. } = &config.scheduler;
    let disks = &config.disks;
    match name {
        SchedulerName::HybridShared
        | SchedulerName::HybridPartitioned
        | SchedulerName::Fifo
        | SchedulerName::PassThrough => SchedulerConfig::Fifo,
        SchedulerName::Elevator => SchedulerConfig::Elevator,
        SchedulerName::TokenBucket => SchedulerConfig::TokenBucket(disks.iter().map(cap).collect()),
        SchedulerName::Mclock => SchedulerConfig::MClock(disks.iter().map(shares).collect()),
        SchedulerName::FairQueue => SchedulerConfig::FairQueue(FairConfig {
            weights: disks.iter().map(|disk| disk.weight.unwrap_or(1)).collect(),
            budget_sectors: FAIR_SECTORS,
            idle_ns: FAIR_IDLE_NS,
        }),
        SchedulerName::Paced => SchedulerConfig::Paced(paced(config, predictors(predict))),
        SchedulerName::HddSlots
        | SchedulerName::SsdSlots
        | SchedulerName::HybridSharedSlots
        | SchedulerName::VirtualFence => SchedulerConfig::Slots(slots(config, predictors(predict))),
    }
}

fn predictors(table: &PredictTable) -> Predictors {
    let knot = |&(distance_bytes, ms): &(u64, f64)| Knot { distance_bytes, access_ns: ms * 1e6 };
    Predictors {
        slow: SlowPredictor::new(table.slow_knots.iter().map(knot).collect(), ns(table.slow_flush_ms)),
        fast: FastPredictor { base_ns: table.fast_base_us * 1e3, per_io_ns: table.fast_per_io_us * 1e3 },
    }
}

/// `as` saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

fn cap(disk: &DiskTable) -> Cap {
    let bytes_per_s = disk.bytes_per_s.map(|size| size.0);
    Cap { iops: disk.iops, bytes_per_s, burst_ns: 100_000_000 }
}

fn shares(disk: &DiskTable) -> Shares {
    Shares {
        reservation_iops: disk.reservation_iops.unwrap_or(0),
        limit_iops: disk.limit_iops.unwrap_or(u64::MAX),
        weight: disk.weight.unwrap_or(1),
    }
}

/// Slots in turn, those of one disk as far apart as rounds allow, spare ones last.
#[allow(clippy::cast_possible_truncation)] // at most 65535 disks
fn slots(config: &Config, predict: Predictors) -> SlotsConfig {
    let rounds = config.disks.iter().map(|disk| disk.slots).max().unwrap_or(0);
    let owner = |(disk, _): (usize, &DiskTable)| SlotOwner::Disk(DiskId(disk as u16));
    let round =
        |round: u32| config.disks.iter().enumerate().filter(move |(_, disk)| disk.slots > round).map(owner);
    let spare = (0..config.scheduler.spare_slots).map(|_| SlotOwner::Unassigned);
    SlotsConfig {
        owners: (0..rounds).flat_map(round).chain(spare).collect(),
        slot_ns: ns(config.scheduler.slot_ms),
        predict,
        max_batch: config.scheduler.max_batch,
    }
}

/// What was found best in virtual time (`fence simulate --figure own`).
fn paced(config: &Config, predict: Predictors) -> PacedConfig {
    let equal = 1.0 / config.disks.len() as f64;
    let class = |disk: &DiskTable| Class::Predictable(disk.share.unwrap_or(equal));
    PacedConfig {
        classes: config.disks.iter().map(class).collect(),
        predict,
        reserve: 0.9,
        due: [Due::AfterFinish(20_000_000), Due::AfterFinish(200_000)],
        burst_ns: 0,
        window_ns: 80_000_000,
        guard_ns: None,
    }
}
