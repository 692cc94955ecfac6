//! Outages of a server of vSphere.

use std::time::Duration;

use virtbench_https::Limit;

use crate::error::VsphereError;

/// Asks until somebody answers. With the time that went by before the last try, and how many failed.
pub(crate) fn through_outages<T>(
    limit: Limit,
    ask: impl FnMut() -> Result<T, VsphereError>,
) -> Result<(T, Duration, u32), VsphereError> {
    let is_away = |error: &VsphereError| matches!(error, VsphereError::Unreachable { .. });
    virtbench_https::through_outages(limit, is_away, ask)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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
