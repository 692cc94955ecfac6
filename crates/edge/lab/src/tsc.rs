//! How fast this host's time stamp counter runs.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// How long it is watched: an interruption of 20 us between two readings then makes 0.1 %.
const TIME: Duration = Duration::from_millis(20);

/// In kHz, watched once. Nothing where there is no such counter, or it stood still.
pub(crate) fn host_tsc_khz() -> Option<u64> {
    static KHZ: OnceLock<Option<u64>> = OnceLock::new();
    // The least disturbed of three is the one whose neighbours agree: the one in the middle.
    *KHZ.get_or_init(|| {
        let mut seen: Vec<u64> = (0..3).filter_map(|_| watch()).collect();
        seen.sort_unstable();
        seen.get(seen.len() / 2).copied()
    })
}

fn watch() -> Option<u64> {
    let (begin, first) = (Instant::now(), counter()?);
    thread::sleep(TIME);
    let (end, last) = (Instant::now(), counter()?);
    let passed_ns = u128::from(last.checked_sub(first)?) * 1_000_000;
    let khz = passed_ns / (end - begin).as_nanos().max(1);
    u64::try_from(khz).ok().filter(|khz| *khz > 0)
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
fn counter() -> Option<u64> {
    // SAFETY: reading the counter touches no memory, and every processor of 64 bits has it.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[test]
    fn the_counter_runs_at_some_gigahertz_and_is_watched_once() {
        let khz = host_tsc_khz().unwrap();
        assert!((100_000..20_000_000).contains(&khz), "{khz}");
        assert_eq!(host_tsc_khz(), Some(khz));
    }
}
