//! What the threads of a load share.

use std::sync::Arc;

use crate::files::board::Board;

/// What the threads of a load share.
pub(crate) struct Phase {
    /// When threads begin, on the monotonic clock.
    pub start_ns: u64,
    /// Where they write what they did.
    pub board: Arc<Board>,
}
