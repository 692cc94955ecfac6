//! Why a cache cannot be started.

use thiserror::Error;

use super::faults::Fault;

/// Why a cache cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// Neither superblock is whole.
    #[error(
        "the fast device holds no cache: format it first, or begin one for the disks with `virtbench fence drain`"
    )]
    NoSuperblock,
    /// Nothing would be lost.
    #[error(
        "the cache was made for other disks or partitions and holds nothing unwritten: `virtbench fence drain` makes it anew"
    )]
    NeedsFormat,
    /// A disk has unwritten blocks in the cache and is not configured in its place.
    #[error(
        "the cache holds {dirty_blocks} unwritten blocks of disk {disk} (identity {expected:02x?}), {}: \
         configure that disk in its place to write them back", found.map_or_else(|| "which is missing".into(), |found| format!("where there now is {found:02x?}"))
    )]
    DirtyDisk {
        /// Its place.
        disk: usize,
        /// Its identity.
        expected: [u8; 16],
        /// The identity of the disk configured in that place.
        found: Option<[u8; 16]>,
        /// What would be lost.
        dirty_blocks: u32,
    },
    /// The partitions are not what they were.
    #[error(
        "the cache has unwritten blocks and partitions of {was:?} blocks: configure these to write them back"
    )]
    DirtyPartitions {
        /// Blocks of each partition.
        was: Vec<u32>,
    },
    /// The longest requests could fill it.
    #[error("the memory log has room for {entries} entries, requests of this length need {needs}")]
    MemoryLog {
        /// Of a half.
        entries: u32,
        /// Of a half.
        needs: u32,
    },
    /// An entry is lost: what it named would be given in an older version.
    #[error(
        "{fault}{}: see `virtbench fence inspect`; a forced `virtbench fence drain` brings to the disks what can still be read, and names the rest",
        if *more > 0 { format!(", and {more} faults more") } else { String::new() }
    )]
    Damaged {
        /// The first of what was found.
        fault: Fault,
        /// Faults beyond it.
        more: u64,
    },
    /// Less was read than the layout says.
    #[error("the image has not all of the cache's metadata: read what the layout names")]
    Truncated,
}
