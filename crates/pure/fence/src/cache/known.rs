//! What is known of one cache block.

/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// Half a cache line of one block's state.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(super) struct Block {
    pub(super) key: u64,
    /// The lower half of the generation; the upper, which hardly ever changes, lies apart.
    pub(super) generation: u32,
    pub(super) crc: u32,
    /// The next block of the same bucket.
    pub(super) chain: u32,
    pub(super) flags: u32,
    /// Neighbours on its list.
    pub(super) previous: u32,
    pub(super) next: u32,
}
