//! The scheduler of a configuration: a row of the catalogue, by its name, and what the disks say.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serializer};
use virtbench_fence::catalogue::{Placement, Variant, find, served};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::{DiskParameters, Parameters, SchedulerConfig};

use super::{Config, DiskTable, PredictTable};

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

/// Where a variant has its disks.
pub(super) const fn home(variant: &Variant) -> Home {
    match variant.placement {
        _ if !variant.fixed => Home::Any,
        Placement::Slow => Home::Slow,
        Placement::Fast => Home::Fast,
        Placement::Shared => Home::Cached { shared: true },
        Placement::Partitioned => Home::Cached { shared: false },
    }
}

/// The variant of that name that the daemon serves.
///
/// # Errors
/// There is none; which there are.
pub fn served_variant(name: &str) -> Result<&'static Variant, String> {
    find(name).filter(|variant| variant.is_served()).ok_or_else(|| {
        let names: Vec<&str> = served().map(|variant| variant.name).collect();
        format!("{name:?} is no scheduler: use {}", names.join(", "))
    })
}

pub(super) fn read_variant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Variant, D::Error> {
    served_variant(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
pub(super) fn write_variant<S: Serializer>(variant: &&Variant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(variant.name)
}

/// The scheduler of a configuration that has been checked.
pub(super) fn scheduler(config: &Config) -> SchedulerConfig {
    let table = &config.scheduler;
    (table.name.scheduler)(&Parameters {
        disks: config.disks.iter().map(disk).collect(),
        slot_ns: ns(table.slot_ms),
        spare_slots: table.spare_slots,
        max_batch: table.max_batch,
        predict: predictors(&table.predict),
    })
}

fn disk(table: &DiskTable) -> DiskParameters {
    DiskParameters {
        slots: table.slots,
        share: table.share,
        iops: table.iops,
        bytes_per_s: table.bytes_per_s.map(|size| size.0),
        reservation_iops: table.reservation_iops,
        limit_iops: table.limit_iops,
        weight: table.weight,
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
