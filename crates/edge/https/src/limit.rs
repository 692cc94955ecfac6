//! Until when something may take.

use std::thread;
use std::time::{Duration, Instant};

/// A moment, and how far off it was when it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    until: Instant,
    length: Duration,
}

impl Limit {
    /// Until this moment.
    #[must_use]
    pub fn at(until: Instant) -> Self {
        Self { until, length: until.saturating_duration_since(Instant::now()) }
    }

    /// What is left.
    #[must_use]
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What there was in the beginning.
    #[must_use]
    pub fn length(self) -> Duration {
        self.length
    }
}

/// How long a server may be away before what waits for it fails.
const OUTAGE_LIMIT: Duration = Duration::from_secs(60);

/// Pauses between tries, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Asks until somebody answers. With the time that went by before the last try, none where the first was answered, and how many failed.
///
/// # Errors
/// Any failure that is no outage by `is_away`, or an outage that lasts.
pub fn through_outages<T, E>(
    limit: Limit,
    is_away: impl Fn(&E) -> bool,
    mut ask: impl FnMut() -> Result<T, E>,
) -> Result<(T, Duration, u32), E> {
    let (begun, mut pause, mut failed) = (Instant::now(), PAUSES.0, 0);
    loop {
        let before = begun.elapsed();
        match ask() {
            Ok(answer) => return Ok((answer, if failed == 0 { Duration::ZERO } else { before }, failed)),
            Err(error) if is_away(&error) => {
                if begun.elapsed() + pause > OUTAGE_LIMIT || limit.left() <= pause {
                    return Err(error);
                }
                thread::sleep(pause);
                (pause, failed) = ((2 * pause).min(PAUSES.1), failed + 1);
            }
            Err(error) => return Err(error),
        }
    }
}
