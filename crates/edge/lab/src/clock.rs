//! A guest's clock held against the host's, in the manner of NTP; and how fast this host's time stamp counter runs, by which
//! guests have theirs.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_record::ClockCheck;

/// The most that a clock gains or loses which runs steadily, in parts per million: the kernel slews one by 500 at most where NTP
/// tells it to, and a bad crystal adds a hundred.
const STEADY_PPM: u64 = 1_000;

/// One question for an agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The host's clock when the question left, in nanoseconds.
    pub sent_ns: u64,
    /// The agent's clock when it answered, in nanoseconds.
    pub clock_ns: u64,
    /// The host's clock when the answer came, in nanoseconds.
    pub received_ns: u64,
}

impl RoundTrip {
    /// How long it took, in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.received_ns.saturating_sub(self.sent_ns)
    }
}

/// How far an agent's clock is ahead of the host's at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// The agent's clock less the host's, in nanoseconds.
    pub offset_ns: i64,
    /// Half the round trip: the true offset lies no further off than this, in nanoseconds.
    pub uncertainty_ns: u64,
    /// The host's clock at that moment, in nanoseconds.
    pub at_ns: u64,
}

impl ClockOffset {
    /// The offset of a clock that is the host's own.
    #[must_use]
    pub const fn same_clock(at_ns: u64) -> Self {
        Self { offset_ns: 0, uncertainty_ns: 0, at_ns }
    }

    /// What the agent's clock shows when the host's shows `host_ns`.
    #[must_use]
    pub fn agent_ns(&self, host_ns: u64) -> u64 {
        host_ns.saturating_add_signed(self.offset_ns)
    }

    /// What the host's clock shows when the agent's shows `agent_ns`.
    #[must_use]
    pub fn host_ns(&self, agent_ns: u64) -> u64 {
        let host = i128::from(agent_ns) - i128::from(self.offset_ns);
        u64::try_from(host).unwrap_or(if host < 0 { 0 } else { u64::MAX })
    }

    /// How the agent's clock ran between this moment and a `later` one; nothing if no time passed.
    #[must_use]
    pub fn drift_until(&self, later: &Self) -> Option<ClockCheck> {
        let passed = later.at_ns.checked_sub(self.at_ns).filter(|passed| *passed > 0)? as f64;
        let gained = i128::from(later.offset_ns) - i128::from(self.offset_ns);
        Some(ClockCheck {
            drift_ppm: gained as f64 / passed * 1e6,
            uncertainty_ppm: (self.uncertainty_ns + later.uncertainty_ns) as f64 / passed * 1e6,
        })
    }
}

/// The offset by the quickest of several round trips, as the least is left open by it.
///
/// # Panics
/// Never; without a round trip the clocks are taken for equal, with no certainty at all.
#[must_use]
pub fn best_of(trips: &[RoundTrip]) -> ClockOffset {
    let Some(best) = trips.iter().min_by_key(|trip| trip.length_ns()) else {
        return ClockOffset { offset_ns: 0, uncertainty_ns: u64::MAX / 2, at_ns: 0 };
    };
    let half = best.length_ns() / 2;
    let at_ns = best.sent_ns + half;
    let offset = i128::from(best.clock_ns) - i128::from(at_ns);
    let offset_ns = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
    ClockOffset { offset_ns, uncertainty_ns: half + 1, at_ns }
}

/// The largest change of an offset from one moment to the next that no steady clock makes, in nanoseconds: more than the
/// uncertainties and [`STEADY_PPM`] leave open, as after a suspend, a migration or a reboot. Nothing where there is none.
#[must_use]
pub fn jump_ns(offsets: &[ClockOffset]) -> Option<i64> {
    let jumps = offsets.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        let gained = i128::from(after.offset_ns) - i128::from(before.offset_ns);
        let passed_ns = after.at_ns.saturating_sub(before.at_ns);
        let open = before.uncertainty_ns.saturating_add(after.uncertainty_ns);
        let open = u128::from(open) + u128::from(passed_ns / 1_000_000 * STEADY_PPM);
        (gained.unsigned_abs() > open).then_some(gained)
    });
    let largest = jumps.max_by_key(|gained| gained.unsigned_abs())?;
    Some(i64::try_from(largest).unwrap_or(if largest < 0 { i64::MIN } else { i64::MAX }))
}

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
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_truth_lies_within_the_uncertainty(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            delays in prop::collection::vec((0u64..10_000_000, 0u64..10_000_000), 1..20),
        ) {
            let mut now = 2_000_000_000_000u64;
            let trips: Vec<RoundTrip> = delays.iter().map(|(there, back)| {
                let sent_ns = now;
                let clock_ns = (sent_ns + there).checked_add_signed(offset).unwrap();
                now = sent_ns + there + back;
                RoundTrip { sent_ns, clock_ns, received_ns: now }
            }).collect();
            let found = best_of(&trips);
            prop_assert!(found.offset_ns.abs_diff(offset) <= found.uncertainty_ns);
            prop_assert_eq!(found.host_ns(found.agent_ns(found.at_ns)), found.at_ns);
            prop_assert_eq!(found.agent_ns(found.at_ns), found.at_ns.checked_add_signed(found.offset_ns).unwrap());
        }

        #[test]
        fn no_clock_panics(sent_ns: u64, clock_ns: u64, received_ns: u64, later: u64) {
            let first = best_of(&[RoundTrip { sent_ns, clock_ns, received_ns }]);
            let _ = first.drift_until(&best_of(&[RoundTrip { sent_ns: later, clock_ns, received_ns }]));
            let _ = first.agent_ns(later);
        }
    }

    #[test]
    fn a_clock_that_jumps_is_told_from_one_that_drifts() {
        let at = |seconds: u64, offset_ns: i64, uncertainty_ns: u64| ClockOffset {
            offset_ns,
            uncertainty_ns,
            at_ns: seconds * 1_000_000_000,
        };
        // 600 ppm, and a round trip that took 40 ms.
        assert_eq!(
            jump_ns(&[at(1, 0, 1_000), at(6, 3_000_000, 1_000), at(11, 20_000_000, 20_000_000)]),
            None
        );
        // Suspended for two seconds: its clock stood still.
        let suspended = [at(1, 0, 1_000), at(6, -2_000_000_000, 1_000), at(11, -2_000_000_000, 1_000)];
        assert_eq!(jump_ns(&suspended), Some(-2_000_000_000));
        assert_eq!(jump_ns(&[at(1, 0, 0), at(2, 30_000_000, 0), at(3, -1_000_000, 0)]), Some(-31_000_000));
        assert_eq!(jump_ns(&[at(1, i64::MIN, 0), at(2, i64::MAX, 0)]), Some(i64::MAX));
        assert_eq!(jump_ns(&[at(1, 0, 0)]), None);
    }

    #[test]
    fn a_clock_that_runs_two_percent_fast_is_suspect() {
        let first = ClockOffset { offset_ns: 5, uncertainty_ns: 100_000, at_ns: 1_000_000_000 };
        let later = ClockOffset { offset_ns: 20_000_005, uncertainty_ns: 100_000, at_ns: 2_000_000_000 };
        let check = first.drift_until(&later).unwrap();
        assert!((check.drift_ppm - 20_000.0).abs() < 1e-6 && (check.uncertainty_ppm - 200.0).abs() < 1e-6);
        assert!(check.is_suspect());
        assert!(first.drift_until(&first).is_none());
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tsc_tests {
    use super::*;

    #[test]
    fn the_counter_runs_at_some_gigahertz_and_is_watched_once() {
        let khz = host_tsc_khz().unwrap();
        assert!((100_000..20_000_000).contains(&khz), "{khz}");
        assert_eq!(host_tsc_khz(), Some(khz));
    }
}
