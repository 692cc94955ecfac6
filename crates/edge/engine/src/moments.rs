//! When a load begins, is measured and ends.

/// The moments of a load on the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// Ramp-up begins.
    pub start_ns: u64,
    /// Measuring begins.
    pub begin_ns: u64,
    /// Measuring ends.
    pub end_ns: u64,
}
