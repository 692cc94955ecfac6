//! How large a trace may be.

/// The most operations of a trace.
pub const MAX_OPS: usize = 10_000_000;
/// The largest trace file, in bytes.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;
