//! How evenly something is shared.

/// Jain's index of fairness (Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and
/// Discrimination", DEC TR-301, 1984): 1 where all have the same, 1/n where one has all. Nothing where
/// nobody has anything, or a share is negative or no number.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.iter().any(|share| !share.is_finite() || *share < 0.0) {
        return None;
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// What the worst has of what the best has, 0 to 1. Nothing where nobody has anything.
#[must_use]
pub fn worst_to_best(shares: &[f64]) -> Option<f64> {
    let best = shares.iter().copied().reduce(f64::max).filter(|best| *best > 0.0)?;
    Some(shares.iter().copied().fold(best, f64::min) / best)
}

/// Standard deviation of samples (n - 1); nothing from fewer than two.
#[must_use]
pub fn sample_stddev(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    Some((samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_shares_have_known_fairness() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        // Jain's own example: 1 and 3 are 16/20.
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[]), jain(&[-1.0, 2.0])), (None, None, None));
        assert_eq!(worst_to_best(&[2.0, 8.0, 4.0]), Some(0.25));
        assert_eq!(worst_to_best(&[0.0]), None);
        assert_eq!(sample_stddev(&[2.0, 4.0, 6.0]), Some(2.0));
        assert_eq!(sample_stddev(&[2.0]), None);
    }

    proptest! {
        #[test]
        fn the_index_has_its_bounds_and_no_unit(
            shares in prop::collection::vec(0.0f64..1e9, 1..20), scale in 0.001f64..1000.0,
        ) {
            prop_assume!(shares.iter().any(|share| *share > 1.0));
            let index = jain(&shares).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / shares.len() as f64 - 1e-12);
            let scaled: Vec<f64> = shares.iter().map(|share| share * scale).collect();
            prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-9);
        }
    }
}
