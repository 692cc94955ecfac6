//! A loop that takes nothing more until it is told to.

use std::sync::mpsc::SyncSender;

use virtbench_fence::Time;

/// Somebody who waits until nothing is under way.
pub(super) struct Rest {
    pub(super) answer: SyncSender<Result<(), String>>,
    pub(super) until: Time,
    /// All disks have been asked to make stable what they have.
    pub(super) is_flushed: bool,
}
