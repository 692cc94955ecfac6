//! Removes what runs have left, several VMs at a time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::LeftRun;
use virtbench_mark::RunId;

use crate::platform::Failure;

/// Those of these runs that are among what is left, and thought dead by now.
pub(crate) fn dead_among(left: Vec<LeftRun>, runs: &BTreeSet<RunId>) -> BTreeSet<RunId> {
    let dead = left.into_iter().filter(|run| run.standing.is_dead() && runs.contains(&run.run));
    dead.map(|run| run.run).collect()
}

/// How long the removal of one VM may take.
pub(crate) const EACH: Duration = Duration::from_secs(120);

/// Removes each of these by `remove`, so many at once, and counts them in `removed`. It gives up at the deadline, or later where there are more
/// than have room before it: each may take its time.
///
/// # Errors
/// The first failure, with what removes the rest: the others are tried all the same.
pub(crate) fn remove_each<T: Sync>(
    wanted: &[T],
    (at_once, deadline): (usize, Instant),
    address: &str,
    removed: &mut usize,
    remove: impl Fn(&T, Instant) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let until = deadline.max(Instant::now() + time_for(wanted.len(), at_once));
    let (next, done, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(one) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            match remove(one, until.min(Instant::now() + EACH)) {
                Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
                Err(error) => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| (0..at_once.min(wanted.len())).for_each(|_| _ = scope.spawn(work)));
    *removed += done.into_inner();
    let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) else { return Ok(()) };
    let message = format!(
        "{} of {} VMs that runs have left are removed: {}; `virtbench sweep --platform '{address}'` removes the rest",
        *removed,
        wanted.len(),
        error.message
    );
    Err(Failure { message, ..error })
}

/// How long so many may take to be removed.
fn time_for(count: usize, at_once: usize) -> Duration {
    EACH * u32::try_from(count.div_ceil(at_once)).unwrap_or(u32::MAX)
}

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
    fn the_time_for_removals_grows_with_their_number() {
        assert_eq!(time_for(0, 8), Duration::ZERO);
        assert_eq!((time_for(8, 8), time_for(9, 8)), (EACH, 2 * EACH));
    }

    #[test]
    fn one_that_cannot_be_removed_keeps_no_other() {
        let mut removed = 0;
        let refused = remove_each(&[1, 2, 3], (2, Instant::now()), "a", &mut removed, |one, _| match one {
            2 => Err(Failure::new(FailureKind::Busy, "it is locked")),
            _ => Ok(()),
        });
        let error = refused.unwrap_err();
        assert_eq!((removed, error.kind), (2, FailureKind::Busy));
        assert!(
            error.message.contains("2 of 3") && error.message.contains("sweep --platform 'a'"),
            "{error}"
        );
    }

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
