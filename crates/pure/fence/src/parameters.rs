//! What a configuration says of its disks and of time, whichever scheduler reads it.

use crate::predict::Predictors;

/// The parameters of all schedulers; each takes those that concern it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The virtual disks, in their order.
    pub disks: Vec<DiskParameters>,
    /// Length of a time slot, nanoseconds.
    pub slot_ns: u64,
    /// Slots of the rotation that belong to no disk yet.
    pub spare_slots: u32,
    /// I/Os in a batch at most.
    pub max_batch: u32,
    /// Predicted service times.
    pub predict: Predictors,
}

/// What one virtual disk is promised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskParameters {
    /// Slots in a rotation.
    pub slots: u32,
    /// Share of both devices' time, above 0 up to 1; an equal part where it is not given.
    pub share: Option<f64>,
    /// Limit in I/Os a second.
    pub iops: Option<u64>,
    /// Limit in bytes a second.
    pub bytes_per_s: Option<u64>,
    /// I/Os a second that it gets at least.
    pub reservation_iops: Option<u64>,
    /// I/Os a second that it gets at most.
    pub limit_iops: Option<u64>,
    /// Its part of what is left, beside the others' weights.
    pub weight: Option<u64>,
}

impl DiskParameters {
    /// One slot, an equal share, no limit.
    pub const EQUAL: Self = Self {
        slots: 1,
        share: None,
        iops: None,
        bytes_per_s: None,
        reservation_iops: None,
        limit_iops: None,
        weight: None,
    };
}
