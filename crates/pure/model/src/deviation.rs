//! Performance deviation ([VirtualFence 2013], section 4.1), for simulated and for measured machines alike.
//!
//! `delta = |P_I - P_D| / P_I x 100 %`: performance alone against performance in company, without its sign. The paper
//! shows the mean over experiments with the least and the greatest of them; of several machines an experiment counts with
//! the mean of theirs, `E[delta]`.

use serde::Serialize;

use crate::interval::{Estimate, Span};
use crate::kind::FigureKind;

/// `|P_I - P_D| / P_I x 100`: how far performance beside others is from that alone, in percent. Nothing where there was
/// none alone.
#[must_use]
pub fn deviation_percent(alone: f64, beside: f64) -> Option<f64> {
    (alone > 0.0 && beside.is_finite()).then(|| 100.0 * ((alone - beside) / alone).abs())
}

/// A figure that is not below zero, over experiments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OverExperiments {
    /// Mean of the experiments with its interval, of [`FigureKind::Positive`]: on logarithms, from three of them on.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The least and the greatest experiment (the paper's range markers).
    pub range: Span,
}

/// Results of experiments, such as the percent that each deviates by. Values that are not finite are passed over; none
/// left is `None`.
#[must_use]
pub fn over_experiments(values: impl IntoIterator<Item = f64>, seed: u64) -> Option<OverExperiments> {
    let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let estimate = FigureKind::Positive.estimate(&values, seed)?;
    Some(OverExperiments { estimate, range: Span { low, high } })
}

/// The deviation of one machine: its performance alone and beside others in each experiment. Experiments without
/// performance alone are passed over.
#[must_use]
pub fn deviation(experiments: impl IntoIterator<Item = (f64, f64)>, seed: u64) -> Option<OverExperiments> {
    over_experiments(
        experiments.into_iter().filter_map(|(alone, beside)| deviation_percent(alone, beside)),
        seed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use virtbench_units::Random;

    /// Three experiments of a machine that is slowed down by so much, alone and beside others with 5 % of chance each.
    #[test]
    fn the_interval_of_three_experiments_holds_the_deviation_in_95_percent_of_trials() {
        for slowed in [0.0, 0.05, 0.2, 3.0] {
            let mut random = Random::new(71);
            let mut experiment = || {
                let mut noise = || (0.05 * normal(&mut random)).exp();
                (100.0 * noise(), 100.0 * (1.0 + slowed) * noise())
            };
            let many = 200_000;
            let all = (0..many)
                .map(|_| experiment())
                .filter_map(|(alone, beside)| deviation_percent(alone, beside));
            let truth = all.sum::<f64>() / f64::from(many);
            let trials = 8_000;
            let held = (0..trials).filter(|_| {
                let experiments = [experiment(), experiment(), experiment()];
                deviation(experiments, 1).unwrap().estimate.span().unwrap().contains(truth)
            });
            let share = held.count() as f64 / f64::from(trials);
            assert!((0.935..0.965).contains(&share), "{slowed}: {share}");
        }
    }

    #[test]
    fn deviation_is_defined_as_in_the_paper() {
        // Section 7.1: Fileserver's accesses take 19 ms alone and 98 ms beside three others.
        assert!((deviation_percent(19.0, 98.0).unwrap() - 415.789).abs() < 1e-3);
        assert_eq!(deviation_percent(200.0, 150.0), Some(25.0));
        assert_eq!(deviation_percent(200.0, 250.0), Some(25.0), "without its sign");
        assert_eq!(deviation_percent(0.0, 1.0), None);
    }

    /// A machine that is slower in one experiment and faster in the next deviates in both.
    #[test]
    fn experiments_to_either_side_do_not_cancel() {
        let both = deviation([(100.0, 90.0), (100.0, 110.0), (100.0, 106.0)], 1).unwrap();
        assert!((both.estimate.mean - 26.0 / 3.0).abs() < 1e-9, "{both:?}");
        assert!((both.range.low - 6.0).abs() < 1e-9 && (both.range.high - 10.0).abs() < 1e-9);
        assert!(both.estimate.span().unwrap().low >= 0.0);
        let wide = deviation([(100.0, 100.0), (100.0, 130.0), (100.0, 103.0)], 1).unwrap();
        assert!(wide.estimate.span().unwrap().low > 0.0, "no deviation lies below zero: {wide:?}");
        let two = deviation([(100.0, 100.0), (100.0, 130.0)], 1).unwrap();
        assert_eq!(two.estimate.span(), None, "two experiments are too few");
        assert_eq!(deviation([(0.0, 1.0)], 1), None);
    }
}
