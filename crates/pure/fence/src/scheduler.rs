//! The seam between what is to be done and when: every policy, `VirtualFence`'s slots and its peers, stands behind it.

use std::any::Any;

use crate::config_error::ConfigError;
use crate::predict::Predictors;
use crate::types::{Account, Device, DeviceOp, DiskId, IoId, Time};

/// A device I/O that waits to be dispatched or has been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedIo {
    /// Its name.
    pub io: IoId,
    /// On whose behalf: its share pays for it.
    pub disk: DiskId,
    /// Which device.
    pub device: Device,
    /// What it does.
    pub op: DeviceOp,
    /// Where on the device.
    pub offset_bytes: u64,
    /// How much.
    pub len_bytes: u32,
}

/// Decides which queued I/O is dispatched when.
///
/// The fence calls [`pick`](Scheduler::pick) after every event until it returns `None`; a scheduler that holds work back
/// for a time says until when in [`next_deadline`](Scheduler::next_deadline). Every I/O that is enqueued must be picked
/// within bounded time and once only.
pub trait Scheduler: Send {
    /// An I/O wants to be dispatched.
    fn enqueue(&mut self, now: Time, io: QueuedIo);

    /// An I/O that was picked has completed, well or badly.
    fn completed(&mut self, now: Time, io: &QueuedIo);

    /// When the completion of this I/O, which has completed, may become known. It is asked once,
    /// after [`completed`](Scheduler::completed); the fence holds the completion until then.
    fn release_at(&self, now: Time, _io: &QueuedIo) -> Time {
        now
    }

    /// The next I/O to dispatch now, or `None` until the next event or deadline.
    fn pick(&mut self, now: Time) -> Option<QueuedIo>;

    /// When something could be picked, or state changes, though nothing else happens.
    fn next_deadline(&self) -> Option<Time>;

    /// Goes by another configuration of its own type, soon; what is queued stays so. False if it cannot, and goes on as
    /// before.
    fn reconfigure(&mut self, _config: &dyn Any) -> bool {
        false
    }

    /// I/Os enqueued and not yet picked.
    fn queued(&self) -> usize;

    /// What it has kept of a disk so far. None from one that keeps nothing.
    fn account(&self, _now: Time, _disk: DiskId) -> Option<Account> {
        None
    }
}

/// A scheduler's configuration.
pub(crate) trait Policy: Any {
    /// Checks it for so many disks.
    ///
    /// # Errors
    /// The first thing that does not fit.
    fn validate(&self, disks: usize) -> Result<(), ConfigError>;

    /// The scheduler over devices of these depths, slow and fast.
    fn scheduler(&self, depth: [u32; 2], disks: usize) -> Box<dyn Scheduler>;
}

/// Checks that a configuration says something of each disk.
///
/// # Errors
/// It says something of more or fewer.
pub(crate) const fn one_each(given: usize, disks: usize) -> Result<(), ConfigError> {
    if given == disks { Ok(()) } else { Err(ConfigError::SharesPerDisk { given, disks }) }
}

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
