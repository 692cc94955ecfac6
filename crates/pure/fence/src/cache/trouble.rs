//! A device that fails: what it could not do is tried again, at first soon and then every two seconds. What waits for it
//! does so for ten seconds, then it is refused until the device does it.
//!
//! A write to the slow device, or to the log, can be tried again because what is to be written is still there. A sync of the
//! fast device cannot: which of the data before it the device has kept nobody knows. After that the partition refuses
//! writes until a restart.

use crate::types::{IoError, Time};

const FIRST_NS: u64 = 50_000_000;
const MOST_NS: u64 = 2_000_000_000;
const PATIENCE_NS: u64 = 10_000_000_000;

/// Since when a device fails, and when it is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    since: Time,
    pub(super) error: IoError,
    delay_ns: u64,
    pub(super) retry_at: Time,
    /// For longer than requests wait.
    pub(super) is_long: bool,
}

impl Trouble {
    /// Another failure, or the first.
    pub(super) fn after(before: Option<Self>, now: Time, error: IoError) -> Self {
        match before {
            None => {
                let retry_at = now.after(FIRST_NS);
                Self { since: now, error, delay_ns: FIRST_NS, retry_at, is_long: false }
            }
            // Of several in flight, the first counts.
            Some(before) if now < before.retry_at => before,
            Some(before) => Self { error, ..before.later(now) },
        }
    }

    pub(super) fn later(self, now: Time) -> Self {
        let delay_ns = (self.delay_ns * 2).min(MOST_NS);
        let is_long = self.is_long || now.since(self.since) >= PATIENCE_NS;
        Self { delay_ns, retry_at: now.after(delay_ns), is_long, ..self }
    }
}
