//! Outages: what may be asked twice is asked again, ever less often, until the server is there again.

use std::thread;
use std::time::{Duration, Instant};
use virtbench_https::Limit;

use crate::error::VsphereError;

/// How long a server may be away before what waits for it fails.
const OUTAGE_LIMIT: Duration = Duration::from_secs(60);
/// Pauses between tries, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Asks until somebody answers. With the time that went by before the last try, and how many failed.
pub(crate) fn through_outages<T>(
    limit: Limit,
    mut ask: impl FnMut() -> Result<T, VsphereError>,
) -> Result<(T, Duration, u32), VsphereError> {
    let (begun, mut pause, mut failed) = (Instant::now(), PAUSES.0, 0);
    loop {
        let before = begun.elapsed();
        match ask() {
            Ok(answer) => return Ok((answer, if failed == 0 { Duration::ZERO } else { before }, failed)),
            Err(error @ VsphereError::Unreachable { .. }) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_until_somebody_answers_or_refuses() {
        let limit = || Limit::at(Instant::now() + Duration::from_secs(30));
        let away = || VsphereError::Unreachable { host: "h".into(), why: "refused".into(), was_sent: false };
        let mut left = 3;
        let answer = through_outages(limit(), || {
            left -= 1;
            if left > 0 { Err(away()) } else { Ok(7) }
        });
        let (value, waited, failed) = answer.unwrap();
        assert!(value == 7 && failed == 2 && waited >= Duration::from_millis(150), "{waited:?}");
        let refused = || VsphereError::Settings("no".into());
        assert_eq!(through_outages(limit(), || Err::<(), _>(refused())), Err(refused()));
        let soon = Limit::at(Instant::now() + Duration::from_millis(60));
        assert_eq!(through_outages(soon, || Err::<(), _>(away())), Err(away()));
    }
}
