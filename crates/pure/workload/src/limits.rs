//! What a load may ask for at most.

/// The most outstanding I/Os a worker can keep.
pub const MAX_OUTSTANDING: u32 = 4096;
/// The most workers.
pub const MAX_WORKERS: u32 = 256;
/// The most buffer memory a load may ask for, in bytes.
pub(crate) const MAX_BUFFER_BYTES: u64 = 4 << 30;
/// The longest pattern that is written, in bytes (fio's own limit).
pub const MAX_PATTERN_BYTES: usize = 512;
/// The most positions that take turns, beside the first.
pub(crate) const MAX_POSITIONS: u32 = 255;
/// The highest rate of an open loop, in operations per second: drawing the intended starts alone
/// would take a fifth of a processor.
pub const MAX_RATE: f64 = 1e7;
/// The most memory for maps of visited blocks, in bytes: 32 TiB in blocks of 4 KiB.
pub(crate) const MAX_MAP_BYTES: u64 = 1 << 30;
/// The longest ramp-up or measurement: a week.
pub const MAX_PHASE_NS: u64 = 7 * 24 * 3_600_000_000_000;
