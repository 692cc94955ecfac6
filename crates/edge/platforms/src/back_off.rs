//! How soon something that failed is tried again: ever less often.

use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What is known of the tries so far.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    failed: Option<(Failure, Instant, Duration)>,
}

impl BackOff {
    /// Tries, unless the last failure is too short a while ago: then that is the answer.
    pub(crate) fn attempt<T>(
        &mut self,
        now: Instant,
        attempt: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut pause = PAUSES.0;
        if let Some((failure, next, last)) = &self.failed {
            if now < *next {
                return Err(failure.clone());
            }
            pause = (2 * *last).min(PAUSES.1);
        }
        let done = attempt();
        self.failed = done.as_ref().err().map(|failure| (failure.clone(), now + pause, pause));
        done
    }
}

/// Pauses between looks at something, ever longer.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(PAUSES.0), |pause| Some((2 * *pause).min(PAUSES.1)))
}

#[cfg(test)]
mod tests {
    use virtbench_record::FailureKind;

    use super::*;

    #[test]
    fn tries_come_ever_less_often_until_one_works() {
        let (mut back_off, begun) = (BackOff::default(), Instant::now());
        let mut tries = Vec::new();
        for ms in 0..20_000 {
            let away = || Failure::new(FailureKind::Unreachable, "away");
            let answer: Result<(), _> = back_off.attempt(begun + Duration::from_millis(ms), || {
                tries.push(ms);
                Err(away())
            });
            assert_eq!(answer, Err(away()));
        }
        assert_eq!(tries[..4], [0, 50, 150, 350]);
        assert!(tries.windows(2).all(|two| two[1] - two[0] <= 2000) && tries.len() < 20, "{tries:?}");
        let later = begun + Duration::from_secs(60);
        assert_eq!(back_off.attempt(later, || Ok(7)), Ok(7));
        assert_eq!(back_off.attempt(later, || Ok(8)), Ok(8));
    }
}
