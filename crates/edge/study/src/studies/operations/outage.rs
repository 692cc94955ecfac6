//! A platform that does not answer for a while: it is asked again, ever less often.

use std::thread;
use std::time::{Duration, Instant};

use virtbench_platforms::Failure;
use virtbench_record::FailureKind;

/// The longest that a platform is waited for.
const LONGEST: Duration = Duration::from_secs(60);
/// How soon it is asked again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long a platform may be away before it is given up, where an operation may take so long.
pub(super) fn patience(limit: Duration) -> Duration {
    limit.min(LONGEST)
}

/// Whether nobody answered.
pub(super) fn is_outage(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Unreachable | FailureKind::TimedOut)
}

/// What the platform answers, once it does: asked again until then, for this long, or until nobody wants to know any more.
///
/// # Errors
/// It refuses, or it did not answer in time: with its last words.
pub(super) fn patiently<T>(
    patience: Duration,
    is_over: impl Fn() -> bool,
    mut ask: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let until = Instant::now() + patience;
    let mut pause = PAUSES.0;
    loop {
        match ask() {
            Err(error) if is_outage(&error) && Instant::now() + pause < until && !is_over() => {
                tracing::debug!(%error, ?pause, "the platform is asked again");
                thread::sleep(pause);
                pause = (2 * pause).min(PAUSES.1);
            }
            answer => return answer,
        }
    }
}

/// The time that these spans cover together, within the first `length_ns` nanoseconds.
pub(super) fn covered_ns(mut spans: Vec<(u64, u64)>, length_ns: u64) -> u64 {
    spans.sort_unstable();
    let (mut covered_ns, mut reached_ns) = (0, 0);
    for (from_ns, until_ns) in spans {
        let (from_ns, until_ns) = (from_ns.max(reached_ns), until_ns.min(length_ns));
        covered_ns += until_ns.saturating_sub(from_ns);
        reached_ns = reached_ns.max(until_ns);
    }
    covered_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_asked_until_it_answers_or_refuses() {
        let answers = |mut left: u32, kind: FailureKind| {
            let mut asked = 0;
            let answer = patiently(
                Duration::from_secs(30),
                || false,
                || {
                    asked += 1;
                    left = left.saturating_sub(1);
                    if left == 0 { Ok(()) } else { Err(Failure::new(kind, "connection refused")) }
                },
            );
            (asked, answer.map_err(|failure| failure.message))
        };
        assert_eq!(answers(3, FailureKind::Unreachable), (3, Ok(())));
        assert_eq!(answers(3, FailureKind::Refused), (1, Err("connection refused".into())));
    }

    #[test]
    fn one_that_stays_away_is_given_up_with_its_last_words() {
        let never = || Err::<(), _>(Failure::new(FailureKind::Unreachable, "connection refused"));
        let failure = patiently(Duration::ZERO, || false, never).unwrap_err();
        assert_eq!(failure.message, "connection refused");
        assert!(patiently(Duration::from_secs(3600), || true, never).is_err(), "a stop ends the wait");
    }

    #[test]
    fn times_that_overlap_count_once_and_end_with_the_piece() {
        assert_eq!(covered_ns(vec![(50, 120), (10, 30), (20, 40)], 100), 80);
        assert_eq!(covered_ns(vec![(10, 90), (20, 30), (40, 95), (120, 130)], 100), 85);
        assert_eq!(covered_ns(Vec::new(), 100), 0);
    }
}
