//! Until when something may take, and how often it is looked at until it is over.

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

/// Of the time that goes by, this share at most is the server's for answers to looks: one in twenty.
const SHARE: u32 = 20;

/// The shortest pause and the longest.
const LOOK_PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));

/// Looks at something that ends at a time that the server does not tell: ever less often, so that the end is known to a
/// twentieth of the time it took, and looking costs the server a twentieth of its time.
#[derive(Debug, Clone, Copy)]
pub struct Polling {
    begun: Instant,
}

impl Polling {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { begun: Instant::now() }
    }

    /// How long to wait until the next look, after one that took so long to be answered.
    #[must_use]
    pub fn pause(&self, answered_in: Duration) -> Duration {
        pause(self.begun.elapsed(), answered_in)
    }
}

fn pause(elapsed: Duration, answered_in: Duration) -> Duration {
    (answered_in * (SHARE - 1)).max(elapsed / SHARE).clamp(LOOK_PAUSES.0, LOOK_PAUSES.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_ever_less_often_and_cost_a_twentieth() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(0), ms(0)), ms(10));
        assert_eq!(pause(ms(1000), ms(1)), ms(50), "a twentieth of what has gone by");
        assert_eq!(pause(ms(1000), ms(5)), ms(95), "a slow server is asked less often");
        assert_eq!(pause(ms(600_000), ms(5)), ms(2000));
        let (mut at, mut looks) = (ms(0), 0);
        while at < ms(60_000) {
            at += pause(at, ms(2)) + ms(2);
            looks += 1;
        }
        assert!(f64::from(looks) * 0.002 <= 60.0 / 20.0, "{looks}");
    }
}
