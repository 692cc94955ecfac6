//! The seam between what is to be done and when: every policy, `VirtualFence`'s slots and its peers, stands behind it.

use crate::account::Account;
use crate::config::SchedulerConfig;
use crate::types::{Device, DeviceOp, DiskId, IoId, Time};

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
    fn completed(&mut self, now: Time, io: QueuedIo);

    /// When the completion of this I/O, which has completed, may become known to whoever waits for it. It is asked once,
    /// after [`completed`](Scheduler::completed); the fence holds the completion until then.
    fn release_at(&self, now: Time, _io: &QueuedIo) -> Time {
        now
    }

    /// The next I/O to dispatch now, or `None` until the next event or deadline.
    fn pick(&mut self, now: Time) -> Option<QueuedIo>;

    /// When something could be picked, or state changes, though nothing else happens.
    fn next_deadline(&self) -> Option<Time>;

    /// Goes by another configuration of its own kind, soon; what is queued stays so. False if it cannot, and goes on as
    /// before.
    fn reconfigure(&mut self, _config: &SchedulerConfig) -> bool {
        false
    }

    /// I/Os enqueued and not yet picked.
    fn queued(&self) -> usize;

    /// What it has kept of a disk so far. None from one that keeps nothing.
    fn account(&self, _now: Time, _disk: DiskId) -> Option<Account> {
        None
    }
}
