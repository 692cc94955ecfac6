//! Power over time to energy.

use virtbench_record::{PowerSample, TileEnergy};

/// Mean power from nought to `elapsed_ns`, in watts: the integral by trapezoids over the time that samples cover, by that time.
/// Nothing where it was not read, or samples cover less than half of the time.
#[must_use]
pub fn mean_watts(energy: &TileEnergy, elapsed_ns: u64) -> Option<f64> {
    let TileEnergy::Read { samples, .. } = energy else { return None };
    let mut samples = samples.clone();
    samples.retain(|sample| sample.watts.is_finite() && sample.watts >= 0.0);
    samples.sort_by_key(|sample| sample.at_ns);
    let end_ns = i64::try_from(elapsed_ns).unwrap_or(i64::MAX);
    let (mut joules, mut covered) = (0.0, 0.0);
    for pair in samples.windows(2) {
        let (from, to) = (pair[0].at_ns.max(0), pair[1].at_ns.min(end_ns));
        if to > from {
            let seconds = (to - from) as f64 / 1e9;
            joules += (power_at(pair, from) + power_at(pair, to)) / 2.0 * seconds;
            covered += seconds;
        }
    }
    (covered > 0.0 && covered * 2e9 >= elapsed_ns as f64).then(|| joules / covered)
}

/// Power at a moment between two samples, on the line between them.
fn power_at(pair: &[PowerSample], at_ns: i64) -> f64 {
    let length = (pair[1].at_ns - pair[0].at_ns) as f64;
    let share = (at_ns - pair[0].at_ns) as f64 / length;
    pair[0].watts + (pair[1].watts - pair[0].watts) * share
}
