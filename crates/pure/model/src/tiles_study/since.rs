//! Since when a member was beyond its level, by its series of seconds.

use virtbench_record::{TileDone, TileSecond};

/// The first second whose percentile was above the limit.
pub(super) fn slow_since(done: &TileDone, limit_ns: u64) -> Option<u64> {
    let is_slow = |second: &&TileSecond| second.response_ns.is_some_and(|ns| ns > limit_ns);
    done.series.iter().find(is_slow).map(|second| second.start_ns)
}

/// The second from which on too few operations were done a second, on average since measuring began.
pub(super) fn few_since(done: &TileDone, least: f64) -> Option<u64> {
    let mut completed = 0;
    let seconds = (1u32..).zip(&done.series).map(|(number, second)| {
        completed += second.completed;
        (second.start_ns, (completed as f64) < least * f64::from(number))
    });
    beginning(seconds)
}

/// The second from which on too many operations had failed.
pub(super) fn failing_since(done: &TileDone, percent: f64) -> Option<u64> {
    let (mut completed, mut failed) = (0, 0);
    let seconds = done.series.iter().map(|second| {
        completed += second.completed;
        failed += second.failed;
        let share = 100.0 * failed as f64 / (completed + failed).max(1) as f64;
        (second.start_ns, share > percent)
    });
    beginning(seconds)
}

/// The first of the seconds at the end that are all beyond; nothing where the last one is not.
fn beginning(seconds: impl Iterator<Item = (u64, bool)>) -> Option<u64> {
    let mut since = None;
    for (start_ns, is_beyond) in seconds {
        since = if is_beyond { since.or(Some(start_ns)) } else { None };
    }
    since
}
