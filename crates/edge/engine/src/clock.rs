//! The clock that everything here is measured by.

use crate::system::now_ns;

/// Nanoseconds of the machine's monotonic clock.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    now_ns()
}

/// Sleeps until the clock shows `at_ns`, or not at all if it already does.
pub(crate) fn sleep_until(at_ns: u64) {
    let now = monotonic_ns();
    if at_ns > now {
        std::thread::sleep(std::time::Duration::from_nanos(at_ns - now));
    }
}
