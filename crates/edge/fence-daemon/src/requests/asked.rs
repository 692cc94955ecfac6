//! What the loop is asked for by the thread beside it, when there will be other disks.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use virtbench_fence::{DiskId, Fence};

use crate::frontend::listen::Listener;
use crate::frontend::served::Served;
use crate::metrics::Metrics;

/// Why there is no rest: the disk that is to go has a client.
pub(crate) const HAS_CLIENT: &str = "a client uses it: end that first";

/// A wish, and who hears how it went.
pub(crate) struct Asked {
    pub(crate) wish: Wish,
    pub(crate) answer: SyncSender<Result<(), String>>,
}

/// What is wished for.
pub(crate) enum Wish {
    /// Finish what is under way, make it stable, and take nothing more until told to. Not if this disk has a client.
    Rest {
        /// A disk that is to go.
        leaves: Option<DiskId>,
    },
    /// Take requests again.
    GoOn,
    /// Take requests again, by another fence.
    Change(Box<Change>),
    /// End: this cannot go on.
    End,
}

/// Other disks.
pub(crate) struct Change {
    pub(crate) fence: Fence,
    /// For each disk, whether every write is stable before it is answered.
    pub(crate) write_through: Vec<bool>,
    /// Where each disk of before is now; nowhere if it is gone.
    pub(crate) moved: Vec<Option<DiskId>>,
    /// A disk that was not there before.
    pub(crate) added: Option<Added>,
    pub(crate) figures: Arc<Metrics>,
}

/// A disk that is served from now on.
pub(crate) struct Added {
    pub(crate) served: Served,
    /// Of a vhost-user client.
    pub(crate) listener: Option<Listener>,
}
