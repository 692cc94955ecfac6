//! Trims under way.

/// A trim that is not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trim {
    pub(super) id: u64,
    pub(super) request: u32,
    /// Keys of its blocks.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The round of commits after which the slow device may discard them; none once it has been told to.
    pub(super) round: Option<u64>,
    /// I/Os in flight.
    pub(super) ios: u32,
}
