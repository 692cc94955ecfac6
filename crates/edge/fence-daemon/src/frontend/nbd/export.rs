//! What clients see of a virtual disk.

use virtbench_nbd::server::Export;

/// What requests are best multiples of: blocks of the cache.
const PREFERRED_BLOCK_BYTES: u32 = 4096;

/// A disk of this name and size, whose requests must be multiples of `block_bytes`.
pub(super) fn export(name: &str, size_bytes: u64, read_only: bool, block_bytes: u32) -> Export {
    Export {
        name: name.to_owned(),
        size_bytes,
        read_only,
        min_block_bytes: block_bytes,
        preferred_block_bytes: PREFERRED_BLOCK_BYTES.max(block_bytes),
        is_withdrawn: false,
    }
}
