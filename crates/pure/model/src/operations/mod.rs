//! Management operations: what to measure next, and what it comes to: here, how a latency grows with
//! the number of VMs.

mod analysis;
mod kinds;

#[cfg(test)]
use virtbench_samples::operations as synthetic;

pub use analysis::{
    OperationsAnalysis, StepAnalysis, analyse_operations, most_pieces, search_rate, summarise_operations,
    without_result,
};
pub use kinds::{CloneAnalysis, KindAnalysis, ManagementAnalysis, TenantsAnalysis, analyse_tenants};

use crate::line::Line;

/// A single power that misses the logarithms as it does would be as rare as this if there were no bend.
const BEND_CHANCE: f64 = 0.01;

/// Less than this is missed by a single power that is as good as exact, in squares of logarithms.
const MISSED: f64 = 1e-3;

/// Numbers that two lines and their meeting point take.
const PARAMETERS: usize = 4;

/// Growth with the number of VMs, from at least two of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The latency at the most VMs, as a multiple of that at the fewest.
    pub factor: f64,
    /// The exponent of the number of VMs, over all of them.
    pub exponent: f64,
    /// From this number of VMs on it grows faster or slower; told from three numbers of VMs and five points on, where chance
    /// alone would hardly look like it.
    pub bend: Option<f64>,
}

/// Numbers of VMs against latencies, in any order and several of one number where it was measured repeatedly; nothing under two
/// numbers of VMs, or where one is not positive.
#[must_use]
pub fn growth(points: &[(f64, f64)]) -> Option<Growth> {
    let mut logs: Vec<(f64, f64)> = points.iter().map(|(vms, latency)| (vms.ln(), latency.ln())).collect();
    logs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (logs.first()?.0, logs.last()?.0);
    if last <= first || logs.iter().any(|point| !point.0.is_finite() || !point.1.is_finite()) {
        return None;
    }
    Some(Growth {
        factor: (mean_at(&logs, last) - mean_at(&logs, first)).exp(),
        exponent: Line::through(&logs).slope,
        bend: bend(&logs),
    })
}

/// The mean of the logarithms at a number of VMs.
fn mean_at(logs: &[(f64, f64)], vms: f64) -> f64 {
    let there: Vec<f64> =
        logs.iter().filter(|point| point.0.total_cmp(&vms).is_eq()).map(|one| one.1).collect();
    there.iter().sum::<f64>() / there.len() as f64
}

/// Where two powers fit so much better than one that chance hardly does it: an F-test of two more numbers, whose tail has a
/// closed form, for as many places as were tried. Points in order of their number of VMs.
fn bend(logs: &[(f64, f64)]) -> Option<f64> {
    let mut places: Vec<f64> = logs.iter().map(|point| point.0).collect();
    places.dedup();
    let inner = places.get(1..places.len() - 1)?;
    let freedom = logs.len().checked_sub(PARAMETERS).filter(|freedom| *freedom > 0)? as f64;
    let whole = Line::through(logs).squares;
    // Both parts have the points at the bend.
    let parts = |place: f64| {
        let until: Vec<_> = logs.iter().copied().filter(|point| point.0 <= place).collect();
        let from: Vec<_> = logs.iter().copied().filter(|point| point.0 >= place).collect();
        Line::through(&until).squares + Line::through(&from).squares
    };
    let best = inner.iter().map(|place| (*place, parts(*place)));
    let (place, squares) = best.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let chance = (squares / whole.max(f64::MIN_POSITIVE)).powf(freedom / 2.0) * inner.len() as f64;
    (whole > MISSED && chance < BEND_CHANCE).then(|| place.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_has_its_exponent_and_no_bend() {
        let points: Vec<(f64, f64)> =
            [10.0, 20.0, 50.0, 100.0].map(|vms: f64| (vms, 3.0 * vms.sqrt())).into();
        let found = growth(&points).unwrap();
        assert!(
            (found.exponent - 0.5).abs() < 1e-9 && (found.factor - 10f64.sqrt()).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(found.bend, None);
    }

    #[test]
    fn a_latency_that_stays_and_then_grows_bends_there() {
        let latency = |vms: f64| if vms <= 40.0 { 2.0 } else { 2.0 * (vms / 40.0).powi(2) };
        let points: Vec<(f64, f64)> = [10.0, 20.0, 40.0, 80.0, 160.0].map(|vms| (vms, latency(vms))).into();
        let bend = growth(&points).unwrap().bend.unwrap();
        assert!((bend - 40.0).abs() < 1e-6, "{bend}");
    }

    /// Four pieces at each of five numbers of VMs, each off by some 5 %.
    fn measured(seed: u64, latency: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut random = virtbench_units::Random::new(seed);
        let mut off = || (0..4).map(|_| random.below(1000) as f64 / 1000.0 - 0.5).sum::<f64>() * 0.09;
        let points = [10.0, 20.0, 40.0, 80.0, 160.0].into_iter().flat_map(|vms| [vms; 4]);
        points.map(|vms| (vms, latency(vms) * off().exp())).collect()
    }

    #[test]
    fn noise_is_no_bend_and_does_not_hide_one() {
        let (mut invented, mut found) = (0, 0);
        for seed in 0..1000 {
            invented += u32::from(growth(&measured(seed, |vms| vms.sqrt())).unwrap().bend.is_some());
            let bent = |vms: f64| if vms <= 40.0 { 2.0 } else { 2.0 * (vms / 40.0).powf(0.7) };
            let bend = growth(&measured(seed, bent)).unwrap().bend;
            found += u32::from(bend.is_some_and(|vms| (vms - 40.0).abs() < 1e-6));
        }
        assert!(invented <= 20 && found >= 950, "{invented} invented, {found} found, of 1000 each");
    }

    #[test]
    fn four_points_that_are_off_by_chance_do_not_bend() {
        let points = [(10.0, 1.0), (20.0, 1.02), (40.0, 0.97), (80.0, 1.2)];
        assert_eq!(growth(&points).unwrap().bend, None);
    }

    #[test]
    fn one_number_of_vms_says_nothing() {
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&[(10.0, 1.0), (10.0, 2.0)]), None);
        assert_eq!(growth(&[(10.0, 1.0), (20.0, 0.0)]), None);
    }
}
