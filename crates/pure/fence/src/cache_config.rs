//! How the fast device caches the slow one.

/// Bytes of a cache block (section 7: the block size of the disk's file systems).
pub const BLOCK_BYTES: u64 = 4096;

/// A write-back cache on the fast device (section 6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheConfig {
    /// Identity of this cache: entries of an earlier one on the same device are void. New with every format.
    pub uuid: [u8; 16],
    /// One partition a disk, or one for all.
    pub partitions: CachePartitions,
    /// The background eviction keeps so many blocks of a partition free.
    pub free_target: u32,
    /// With so few free, incoming requests of the partition are halted.
    pub low_watermark: u32,
    /// Blocks of driver's memory a partition may use at once: at most half of them for fills, a quarter for write-backs, and
    /// any for partial writes.
    pub scratch_blocks: u32,
    /// Of each disk, in their order, how many bytes of consecutive writes go through the cache before those that follow go
    /// past it, to the slow device: a sync of that which fails then fails a flush. None does where nothing is given.
    pub bypass_bytes: Vec<Option<u64>>,
}

/// Section 6.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachePartitions {
    /// One for all disks, of so many blocks.
    Shared(u32),
    /// One for each disk, of so many blocks, in the order of the disks.
    PerDisk(Vec<u32>),
}

impl CachePartitions {
    /// Blocks of each partition.
    #[must_use]
    pub fn blocks(&self) -> &[u32] {
        match self {
            Self::Shared(blocks) => std::slice::from_ref(blocks),
            Self::PerDisk(blocks) => blocks,
        }
    }
}
