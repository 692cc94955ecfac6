//! Why a device is not served with this cache, or without one.

use thiserror::Error;

/// Why a device is not served with this cache, or without one.
#[derive(Debug, Error)]
pub enum AttachError {
    /// No cache is configured.
    #[error(
        "{device}: the newest data of its disks may be in a cache, and none is configured: configure it as it was, and \
         `virtbench fence drain` writes everything back; without it, `drain --force` gives up what it alone has"
    )]
    LeftOut {
        /// The device that disks live on.
        device: String,
    },
    /// There is no cache, or another one.
    #[error(
        "{fast} does not hold the cache that may have the newest data of {device}: bring the one that was served last; \
         `virtbench fence drain --force` gives it up and begins anew"
    )]
    Another {
        /// The device that disks live on.
        device: String,
        /// The fast one.
        fast: String,
    },
    /// A copy of the fast device that was made earlier.
    #[error(
        "{fast} is an older copy: its cache is of start {start}, {device} was last served with start {newest}: bring the \
         newest; `virtbench fence drain --force` gives it up and begins anew"
    )]
    OlderCache {
        /// The device that disks live on.
        device: String,
        /// The fast one.
        fast: String,
        /// Of the cache.
        start: u64,
        /// That the label knows.
        newest: u64,
    },
    /// A copy of the slow device that was made earlier.
    #[error(
        "{device} is an older copy: it was last served with start {newest} of its cache, and the cache on {fast} is of start \
         {start}: bring the newest; `virtbench fence drain --force` goes on without what the cache alone has"
    )]
    OlderDevice {
        /// The device that disks live on.
        device: String,
        /// The fast one.
        fast: String,
        /// Of the cache.
        start: u64,
        /// That the label knows.
        newest: u64,
    },
    /// The device was served without it.
    #[error(
        "{fast} holds blocks of a cache of which {device} knows nothing: it was drained or served without it since; \
         `virtbench fence drain --force` gives them up and makes the cache anew"
    )]
    Forgotten {
        /// The device that disks live on.
        device: String,
        /// The fast one.
        fast: String,
    },
}
