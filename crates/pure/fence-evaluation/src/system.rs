//! Ways of storing virtual disks, as worlds.

use virtbench_fence::cache::{CacheConfig, CachePartitions};
use virtbench_fence::catalogue::{self, Placement, Variant};
use virtbench_fence::paced::{Due, PacedConfig};
use virtbench_fence::peers::CfqConfig;
use virtbench_fence::predict::Predictors;
use virtbench_fence::slots::SlotsConfig;
use virtbench_fence::{
    Backing, Config, DeviceConfig, DiskConfig, DiskParameters, Parameters, SchedulerConfig,
};
use virtbench_fence_sim::client::Client;
use virtbench_fence_sim::disk::Order;
use virtbench_fence_sim::{Span, WorldConfig};

use crate::settings::Settings;

/// Longest request of a guest: what Linux's readahead and block layer made of file accesses then.
pub(crate) const MAX_REQUEST_BYTES: u32 = 128 << 10;

/// The fewest virtual disks that the devices are divided among.
const LEAST_PARTITIONS: usize = 4;

/// Blocks that each cache partition keeps free.
pub(crate) const FREE_TARGET: u32 = 128;
/// Below so many free blocks requests are halted.
const LOW_WATERMARK: u32 = 16;
/// Blocks of memory for fills and write-backs of a partition. The daemon has 512 by default, beside a free target of 512. The
/// published evaluation was made with this number; one plan tried out with 64 to 1024 differed no more than its intervals say.
const SCRATCH_BLOCKS: u32 = 256;
/// Accesses of each file, on average, that fill a cache.
const FILL: u32 = 2;

/// Where virtual disks are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Store {
    /// On the hard disk.
    Hdd,
    /// On the solid-state drive.
    Ssd,
    /// On the hard disk behind one cache on the solid-state drive for all of them.
    Shared {
        /// The cache is sized for this hit rate.
        hit_percent: f64,
    },
    /// On the hard disk behind a cache for each.
    Partitioned {
        /// The caches are sized for this hit rate.
        hit_percent: f64,
    },
}

/// How their time is shared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sharing {
    /// As in a row of the catalogue. Under the host's scheduler each virtual machine's driver is a process; where a cache is
    /// shared, one process issues everything ([VirtualFence 2013], sections 4.4 and 6.2).
    Listed(&'static Variant),
    /// Slots of so many milliseconds that are not work-conserving, one a virtual disk.
    Slots(f64),
    /// Such slots of so many milliseconds, so many for each virtual disk in turn.
    Rotation(f64, SlotCounts),
    /// A virtual device for each disk, answers when they are due, all shares alike.
    Paced(Pacing),
}

/// How many slots each virtual disk has in a rotation.
pub type SlotCounts = [u8; MOST_PLANNED];
/// The most virtual disks whose slots are counted one by one.
pub const MOST_PLANNED: usize = 8;

/// The parameters of [`Sharing::Paced`]; see [`PacedConfig`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    /// Time that is reserved for a predicted one.
    pub reserve: f64,
    /// When answers are due on the slow and on the fast device, milliseconds.
    pub due_ms: [f64; 2],
    /// Whether they are due so long after the virtual device finished rather than began.
    pub after_finish: bool,
    /// How far a disk may run ahead of its virtual device, milliseconds.
    pub burst_ms: f64,
    /// What is due within this of the first is served by nearness, milliseconds.
    pub window_ms: f64,
}

/// A way of storing virtual disks: Table 1's rows and the baselines are values of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct System {
    /// Where they are.
    pub store: Store,
    /// How time is shared.
    pub sharing: Sharing,
}

impl Pacing {
    /// What the catalogue has: it lowers the mean response time of all machines by a quarter at less than
    /// `VirtualFence`'s deviation, on all three workloads.
    pub const CHOSEN: Self =
        Self { reserve: 0.9, due_ms: [20.0, 0.2], after_finish: true, burst_ms: 0.0, window_ms: 80.0 };
}

impl System {
    /// `VirtualFence(50 %, 20 ms)`.
    pub const VIRTUAL_FENCE: Self = Self::listed(&catalogue::VIRTUAL_FENCE);

    /// A row of the catalogue, its caches sized for half of the accesses.
    #[must_use]
    pub const fn listed(variant: &'static Variant) -> Self {
        let hit_percent = catalogue::HIT_PERCENT;
        let store = match variant.placement {
            Placement::Slow => Store::Hdd,
            Placement::Fast => Store::Ssd,
            Placement::Shared => Store::Shared { hit_percent },
            Placement::Partitioned => Store::Partitioned { hit_percent },
        };
        let sharing = match variant.slot_ms {
            Some(ms) => Sharing::Slots(ms),
            None => Sharing::Listed(variant),
        };
        Self::new(store, sharing)
    }

    /// A system.
    #[must_use]
    pub const fn new(store: Store, sharing: Sharing) -> Self {
        Self { store, sharing }
    }

    /// Its name in progress and errors.
    #[must_use]
    pub fn name(&self) -> String {
        let store = match self.store {
            Store::Hdd => "HDD".to_owned(),
            Store::Ssd => "SSD".to_owned(),
            Store::Shared { hit_percent } => format!("HDD behind a shared cache ({hit_percent} %)"),
            Store::Partitioned { hit_percent } => format!("HDD behind caches ({hit_percent} %)"),
        };
        match self.sharing {
            Sharing::Listed(variant) => format!("{store}, {}", variant.name),
            Sharing::Slots(ms) => format!("{store}, slots of {ms} ms"),
            Sharing::Rotation(ms, slots) => {
                let slots: Vec<String> = slots.iter().filter(|n| **n > 0).map(u8::to_string).collect();
                format!("{store}, {} slots of {ms} ms", slots.join("+"))
            }
            Sharing::Paced(_) => format!("{store}, paced"),
        }
    }

    /// Whether a machine that is alone leaves the others' time unused.
    #[must_use]
    pub const fn keeps_slots_idle(&self) -> bool {
        match self.sharing {
            Sharing::Listed(variant) => !variant.work_conserving,
            Sharing::Slots(_) | Sharing::Rotation(..) | Sharing::Paced(_) => true,
        }
    }

    /// Whether the host's scheduler shares the time.
    #[must_use]
    pub const fn is_under_host(&self) -> bool {
        matches!(self.sharing, Sharing::Listed(Variant { modelled_host: Some(_), .. }))
    }

    /// The hit rate that its caches are sized for, percent; none without caches.
    #[must_use]
    pub const fn hit_percent(&self) -> Option<f64> {
        match self.store {
            Store::Hdd | Store::Ssd => None,
            Store::Shared { hit_percent } | Store::Partitioned { hit_percent } => Some(hit_percent),
        }
    }

    /// Size of each of so many virtual disks. They are as large on either device: what fits the smaller one, which
    /// in the paper held all four of them (section 5).
    #[must_use]
    pub fn disk_bytes(&self, settings: &Settings, disks: usize) -> u64 {
        let fits = settings.hdd.capacity_bytes.min(settings.ssd.capacity_bytes);
        settings.disk_bytes.unwrap_or(fits / disks.max(LEAST_PARTITIONS) as u64)
    }

    fn scheduler(&self, settings: &Settings, predictors: &Predictors, disks: usize) -> SchedulerConfig {
        let equal = parameters(settings, predictors, disks);
        match self.sharing {
            Sharing::Listed(variant) => {
                let scheduler = variant.modelled_host.unwrap_or(variant.scheduler)(&equal);
                match (scheduler, self.store) {
                    (SchedulerConfig::Cfq(cfq), Store::Shared { .. }) => {
                        SchedulerConfig::Cfq(CfqConfig { processes: vec![0; disks], ..cfq })
                    }
                    (scheduler, _) => scheduler,
                }
            }
            Sharing::Slots(ms) => {
                SchedulerConfig::Slots(SlotsConfig::new(&Parameters { slot_ns: ns(ms), ..equal }))
            }
            Sharing::Rotation(ms, counts) => {
                let slots =
                    |(disk, count): (DiskParameters, u8)| DiskParameters { slots: count.into(), ..disk };
                let disks = equal.disks.into_iter().zip(counts).map(slots).collect();
                SchedulerConfig::Slots(SlotsConfig::new(&Parameters { slot_ns: ns(ms), disks, ..equal }))
            }
            Sharing::Paced(pacing) => SchedulerConfig::Paced(paced(&pacing, &equal)),
        }
    }

    /// A world of this system with a virtual disk for each client, and `cache_blocks` blocks of 4 KiB of
    /// cache for each where it has a cache.
    #[must_use]
    pub fn world(
        &self,
        settings: &Settings,
        predictors: &Predictors,
        cache_blocks: u32,
        clients: Vec<Client>,
        span: Span,
        seed: u64,
    ) -> WorldConfig {
        let backing = match self.store {
            Store::Ssd => Backing::Fast,
            Store::Hdd => Backing::Slow,
            Store::Shared { .. } => {
                let blocks = u32::try_from(cache_blocks as usize * clients.len()).unwrap_or(u32::MAX);
                Backing::Cached(cache(CachePartitions::Shared(blocks)))
            }
            Store::Partitioned { .. } => {
                Backing::Cached(cache(CachePartitions::PerDisk(vec![cache_blocks; clients.len()])))
            }
        };
        let size_bytes = self.disk_bytes(settings, clients.len());
        let unlimited = matches!(self.sharing, Sharing::Listed(Variant { unlimited_depth: true, .. }));
        let depth = if unlimited { u32::MAX } else { 1 };
        let scheduler = self.scheduler(settings, predictors, clients.len());
        WorldConfig {
            fence: Config {
                disks: partitions(size_bytes, settings.stride_bytes.unwrap_or(size_bytes), clients.len()),
                slow: DeviceConfig { size_bytes: settings.hdd.capacity_bytes, depth },
                fast: DeviceConfig { size_bytes: settings.ssd.capacity_bytes, depth },
                backing,
                scheduler,
                max_request_bytes: MAX_REQUEST_BYTES,
            },
            hdd: settings.hdd,
            ssd: settings.ssd,
            hdd_order: Order::Scan,
            clients,
            fill: if self.hit_percent().is_some() { FILL } else { 0 },
            span,
            seed,
        }
    }
}

/// The cache on the fast device. The watermarks are as small as requests of that length allow.
fn cache(partitions: CachePartitions) -> CacheConfig {
    CacheConfig {
        uuid: *b"virtbench-sim\0\0\0",
        partitions,
        free_target: FREE_TARGET,
        low_watermark: LOW_WATERMARK,
        scratch_blocks: SCRATCH_BLOCKS,
        bypass_bytes: Vec::new(),
    }
}

/// All disks alike. Where a scheduler limits their rates, each has an equal part of what the hard disk does at random.
fn parameters(settings: &Settings, predictors: &Predictors, disks: usize) -> Parameters {
    let iops = u64::from(settings.hdd.random_iops(disks));
    let disk = DiskParameters {
        iops: Some(iops),
        reservation_iops: Some(iops),
        limit_iops: Some(iops),
        ..DiskParameters::EQUAL
    };
    Parameters {
        disks: vec![disk; disks],
        slot_ns: ns(catalogue::SLOT_MS),
        spare_slots: 0,
        max_batch: catalogue::MAX_BATCH,
        predict: predictors.clone(),
    }
}

fn paced(pacing: &Pacing, parameters: &Parameters) -> PacedConfig {
    let due = if pacing.after_finish { Due::AfterFinish } else { Due::AfterStart };
    PacedConfig {
        reserve: pacing.reserve,
        due: pacing.due_ms.map(|ms| due(ns(ms))),
        burst_ns: ns(pacing.burst_ms),
        window_ns: ns(pacing.window_ms),
        ..PacedConfig::new(parameters)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates; the fence checks the rest
fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

/// Partitions of `size_bytes` that begin `stride_bytes` apart, in whole MiB, for `disks` virtual disks.
fn partitions(size_bytes: u64, stride_bytes: u64, disks: usize) -> Vec<DiskConfig> {
    const MIB: u64 = 1 << 20;
    let (size_bytes, stride_bytes) = (size_bytes / MIB * MIB, stride_bytes / MIB * MIB);
    (0..disks as u64)
        .map(|disk| DiskConfig {
            uuid: u128::from(disk + 1).to_le_bytes(),
            offset_bytes: disk * stride_bytes,
            size_bytes,
        })
        .collect()
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
