//! The event generator that a model's limits take from (`eventgen rate=...`).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::files::board::Board;
use crate::files::pace::sleep_until;

/// How long unused events are kept, in nanoseconds.
const KEPT_NS: f64 = 100_000_000.0;

/// Events at a fixed rate, shared by all threads.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Nanoseconds between two events; nothing where nothing is limited.
    gap_ns: Option<f64>,
    /// When the next event comes.
    next_ns: AtomicU64,
}

impl Limits {
    /// So many events a second, from a moment of the clock on.
    pub(crate) fn new(per_second: Option<f64>, start_ns: u64) -> Self {
        Self { gap_ns: per_second.map(|rate| 1e9 / rate), next_ns: AtomicU64::new(start_ns) }
    }

    /// Takes so many events and waits for the last of them; false if the load is over before.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn take(&self, board: &Board, events: f64, now_ns: u64) -> bool {
        let Some(gap_ns) = self.gap_ns else { return true };
        let length_ns = (gap_ns * events) as u64;
        let earliest_ns = now_ns.saturating_sub(KEPT_NS as u64);
        let after = |next: u64| Some(next.max(earliest_ns) + length_ns);
        let before = self
            .next_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after)
            .unwrap_or_else(|next| next);
        sleep_until(board, before.max(earliest_ns) + length_ns)
    }
}
