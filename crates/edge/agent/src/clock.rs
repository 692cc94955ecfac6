//! The one clock of host and agent.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, in nanoseconds.
///
/// Not `CLOCK_MONOTONIC_RAW`: a thread can sleep until an instant of the former only, io_uring's
/// timeouts and [`std::time::Instant`] use it, and natively host and agent then share one clock
/// exactly. What NTP may bend it by (500 ppm) is far below the 1 % at which drift is reported.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}
