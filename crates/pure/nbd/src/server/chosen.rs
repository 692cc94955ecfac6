//! What the negotiation ends with.

/// What a client has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The export's place in the list.
    pub export: usize,
    /// Reads are answered by structured replies.
    pub structured: bool,
    /// NBD_CMD_BLOCK_STATUS may be asked.
    pub allocation: bool,
}
