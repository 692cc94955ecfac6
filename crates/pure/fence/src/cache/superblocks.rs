//! What the superblocks say of a cache that has been used before.

use super::metadata::{Layout, Superblock};
use super::recovery_error::RecoveryError;

/// Where the metadata of a cache lies that has been used before, by its superblocks (the first 8192 bytes): what an
/// [`Image`](super::Image) is to be read by, whatever is configured now.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn layout(superblocks: &[u8]) -> Result<Layout, RecoveryError> {
    newest(superblocks).map(|found| Layout::new(&found.partitions))
}

/// Which cache it is, by its superblocks.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn identity(superblocks: &[u8]) -> Result<[u8; 16], RecoveryError> {
    newest(superblocks).map(|found| found.uuid)
}

/// Which cache it is, and how often it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its identity.
    pub uuid: [u8; 16],
    /// Number of the superblock that counts: it rises with every start.
    pub start: u64,
    /// The other superblock is torn or damaged: there may have been a newer one.
    pub is_single: bool,
}

/// The same with the number of starts, by its superblocks.
///
/// # Errors
/// [`RecoveryError::NoSuperblock`].
pub fn origin(superblocks: &[u8]) -> Result<Origin, RecoveryError> {
    let found = newest(superblocks)?;
    let whole = superblocks.chunks_exact(4096).filter_map(Superblock::decode).count();
    Ok(Origin { uuid: found.uuid, start: found.sequence, is_single: whole < 2 })
}

pub(super) fn newest(superblocks: &[u8]) -> Result<Superblock, RecoveryError> {
    let copies = superblocks.chunks_exact(4096).filter_map(Superblock::decode);
    copies.max_by_key(|copy| copy.sequence).ok_or(RecoveryError::NoSuperblock)
}
