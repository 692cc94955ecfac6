//! The clock that everything here is measured by.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
///
/// Not `CLOCK_MONOTONIC_RAW`: timers and sleeps run on the former only, and natively host and agent
/// then share one clock exactly. What NTP may bend it by (500 ppm) is far below the 1 % at which a
/// guest's drift is reported.
#[inline]
#[must_use]
#[allow(clippy::cast_sign_loss)]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until the clock shows `at_ns`, or not at all if it already does.
pub(crate) fn sleep_until(at_ns: u64) {
    let now = monotonic_ns();
    if at_ns > now {
        std::thread::sleep(std::time::Duration::from_nanos(at_ns - now));
    }
}
