//! What keeps a configuration from being used.

use thiserror::Error;

/// A configuration that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ConfigError {
    /// Nothing to serve.
    #[error("no virtual disks: configure at least one")]
    NoDisks,
    /// More disks than an id can name.
    #[error("{0} virtual disks: at most 65535 share a fence")]
    TooManyDisks(usize),
    /// More disks than a cache's superblock has room for.
    #[error(
        "{0} virtual disks: a cache has room for 128: give some a fence of their own, or serve them without a cache"
    )]
    TooManyCachedDisks(usize),
    /// A disk is not in whole blocks, or empty.
    #[error(
        "disk {disk}: offset {offset_bytes} and size {size_bytes} must be multiples of 4096, the size not 0"
    )]
    DiskUnaligned {
        disk: usize,
        /// As configured.
        offset_bytes: u64,
        /// As configured.
        size_bytes: u64,
    },
    /// A disk's partition ends behind its device.
    #[error("disk {disk} ends at byte {end_bytes}, its device at {device_bytes}: make it smaller or move it")]
    DiskBeyondDevice {
        disk: usize,
        /// Where it would end.
        end_bytes: u64,
        /// Where the device ends.
        device_bytes: u64,
    },
    /// Two partitions share bytes.
    #[error("disks {first} and {second} overlap: give each a partition of its own")]
    DisksOverlap {
        /// The one that begins first.
        first: usize,
        /// The other.
        second: usize,
    },
    /// Two disks of one identity.
    #[error("disks {first} and {second} have the same identity")]
    SameIdentity {
        first: usize,
        /// The other.
        second: usize,
    },
    /// A device that may have no I/O outstanding.
    #[error("a device's depth is 0: allow at least one outstanding I/O")]
    ZeroDepth,
    /// Caps, shares or weights are not one a disk.
    #[error("{given} caps, shares or weights for {disks} disks: give one for each")]
    SharesPerDisk {
        given: usize,
        /// Wanted.
        disks: usize,
    },
    /// A disk that would never be served.
    #[error("disk {disk} has a rate, weight or budget of 0 and would never be served: raise it")]
    ZeroShare { disk: usize },
    /// More is promised than there is.
    #[error(
        "shares add up to more than the whole device, or nothing is reserved: lower the shares, reserve more than 0"
    )]
    SharesBeyondDevice,
    /// More is promised than allowed.
    #[error("disk {disk} reserves more I/Os a second than its limit allows: lower one or raise the other")]
    ReservationOverLimit { disk: usize },
    /// A rotation without slots, slots without length, or batches without I/Os.
    #[error(
        "no slots, slots of 0 ns, or batches of 0: configure at least one slot longer than 0, batches of at least 1"
    )]
    NoSlots,
    /// Its length could not be counted.
    #[error("{slots} slots of {slot_ns} ns: make them fewer or shorter, 2^62 ns together at most")]
    RotationTooLong {
        /// In the rotation.
        slots: usize,
        /// As configured.
        slot_ns: u64,
    },
    /// Not even one fast I/O fits.
    #[error(
        "slots of {slot_ns} ns cannot hold one I/O of the fast device, predicted at {needs_ns} ns: make them longer"
    )]
    SlotTooShort {
        /// As configured.
        slot_ns: u64,
        /// Predicted.
        needs_ns: u64,
    },
    /// A slot belongs to a disk that is not there.
    #[error("slot {slot} belongs to disk {disk}, which is not configured")]
    SlotOwnerUnknown {
        slot: usize,
        /// Its owner.
        disk: usize,
    },
    /// A disk that would never be served.
    #[error("disk {disk} has none of the {slots} slots: give it one, or add a shared slot")]
    DiskWithoutSlot {
        disk: usize,
        /// In the rotation.
        slots: usize,
    },
    /// A partition a disk was asked for, and not given.
    #[error("{partitions} cache partitions for {disks} disks: configure one a disk, or a shared one")]
    CachePartitions {
        partitions: usize,
        /// Wanted.
        disks: usize,
    },
    /// Requests could wait for ever.
    #[error(
        "eviction keeps {free_target} blocks free, requests halt at {low_watermark}: there must be {request} between \
         for the longest request, and scratch of at least 1 block"
    )]
    Watermarks {
        /// As configured.
        free_target: u32,
        /// As configured.
        low_watermark: u32,
        /// Blocks of the longest request.
        request: u32,
    },
    /// A partition without room for what is to be free and one request.
    #[error("cache partition {partition} of {blocks} blocks: make it {needs} to 2^31 blocks")]
    CacheSize {
        partition: usize,
        /// As configured.
        blocks: u32,
        /// At least.
        needs: u32,
    },
    /// The partitions and their metadata are larger than the device.
    #[error(
        "the cache needs {needs_bytes} bytes with its metadata, the fast device has {device_bytes}: make it smaller"
    )]
    CacheBeyondDevice {
        /// With metadata.
        needs_bytes: u64,
        /// There are.
        device_bytes: u64,
    },
    /// The longest request is nothing or not in blocks.
    #[error("longest request of {0} bytes: use a multiple of 4096 up to 1 GiB")]
    MaxRequest(u32),
}
