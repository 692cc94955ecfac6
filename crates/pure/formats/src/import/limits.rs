//! How large a file may be, and what is assumed of one that does not say.

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The most jobs of one file.
pub const MAX_JOBS: usize = 256;
/// Region of a job whose file does not say, until the target's own size is known, in bytes.
pub(super) const ASSUMED_REGION_BYTES: u64 = 1 << 30;
