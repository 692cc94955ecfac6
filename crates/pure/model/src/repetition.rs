//! How often to repeat.

use crate::interval::{CONFIDENCE, Estimate, FigureKind, LEAST_SAMPLES};

/// The most repetitions anyone may ask for.
pub const MAX_REPETITIONS: u32 = 1_000;
/// Confidence of the intervals that are looked at after each repetition until one is narrow. A run
/// that stops at the first narrow one stops, more often than not, where the samples happen to agree: an
/// interval of 95 % made and stopped at so holds the mean in 90 % of trials only. Made of 98 % it holds
/// it in 95 % at the worst spread, whatever the most repetitions are
/// (`an_interval_that_repetitions_stop_at_holds_the_mean_in_95_percent_of_trials`).
const LOOKED_AT: f64 = 0.98;

/// When to stop repeating.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RepeatRule {
    /// After this many.
    Times(u32),
    /// Once the 95 % confidence interval of the mean is narrow enough.
    Until {
        /// The most its half-width may be, as a share of the mean.
        half_width: f64,
        /// The most repetitions, narrow or not.
        most: u32,
    },
}

/// Where a series of repetitions stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Another one is needed.
    More,
    /// As many as were asked for, or as narrow.
    Enough,
    /// The most were made and the interval is still too wide.
    TooWide,
}

impl RepeatRule {
    /// Whether `samples` are enough. `seed` determines the interval's resampling.
    #[must_use]
    pub fn judge(&self, samples: &[f64], seed: u64) -> Progress {
        let made = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        match *self {
            Self::Times(times) if made >= times.min(MAX_REPETITIONS) => Progress::Enough,
            Self::Times(_) => Progress::More,
            Self::Until { half_width, most } => {
                let narrow = self.estimate(samples, seed).and_then(|estimate| relative_half_width(&estimate));
                if samples.len() >= LEAST_SAMPLES && narrow.is_some_and(|found| found <= half_width) {
                    Progress::Enough
                } else if made >= most.min(MAX_REPETITIONS) {
                    Progress::TooWide
                } else {
                    Progress::More
                }
            }
        }
    }

    /// The mean of rates or times repeated under this rule, with the interval that holds it in 95 % of
    /// trials: wider where the rule stops as soon as it is narrow. `seed` determines the resampling.
    #[must_use]
    pub fn estimate(&self, samples: &[f64], seed: u64) -> Option<Estimate> {
        let confidence = match self {
            Self::Times(_) => CONFIDENCE,
            Self::Until { .. } => LOOKED_AT,
        };
        FigureKind::Positive.estimate_at(samples, confidence, seed)
    }

    /// The most repetitions there can be.
    #[must_use]
    pub fn most(&self) -> u32 {
        let (Self::Times(most) | Self::Until { most, .. }) = *self;
        most.min(MAX_REPETITIONS)
    }
}

/// Half the width of an estimate's interval, as a share of its mean. `None` without an interval or
/// where the mean is not above zero.
#[must_use]
pub fn relative_half_width(estimate: &Estimate) -> Option<f64> {
    let span = estimate.span()?;
    (estimate.mean > 0.0).then(|| (span.high - span.low) / 2.0 / estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use virtbench_units::Random;

    const NARROW: RepeatRule = RepeatRule::Until { half_width: 0.02, most: 20 };

    fn repeat(rule: RepeatRule, spread: f64, seed: u64) -> (usize, Progress) {
        let mut random = Random::new(seed);
        let mut samples = Vec::new();
        loop {
            match rule.judge(&samples, seed) {
                Progress::More => samples.push(1_000.0 * (1.0 + spread * (random.unit() - 0.5))),
                end => return (samples.len(), end),
            }
        }
    }

    #[test]
    fn a_number_is_a_number() {
        assert_eq!(repeat(RepeatRule::Times(4), 0.5, 1), (4, Progress::Enough));
        assert_eq!(repeat(RepeatRule::Times(0), 0.5, 1), (0, Progress::Enough));
    }

    #[test]
    fn quiet_targets_need_few_and_noisy_ones_more() {
        assert_eq!(repeat(NARROW, 0.002, 1), (3, Progress::Enough));
        let (count, end) = repeat(NARROW, 0.1, 1);
        assert!((4..=20).contains(&count) && end == Progress::Enough, "{count} {end:?}");
    }

    #[test]
    fn a_hopeless_target_ends_at_the_bound_and_says_so() {
        assert_eq!(repeat(NARROW, 1.5, 1), (20, Progress::TooWide));
        assert_eq!(
            NARROW.judge(&[0.0; 20], 1),
            Progress::TooWide,
            "nothing moved: no share of a mean of zero"
        );
    }

    /// In what share of trials the interval at which a rule stopped holds the mean.
    fn coverage(rule: RepeatRule, deviation: f64, trials: u64) -> f64 {
        let mut random = Random::new(1_945);
        let hits = (0..trials).filter(|_| {
            let mut samples = Vec::new();
            while rule.judge(&samples, 0) == Progress::More {
                samples.push(1_000.0 * (1.0 + deviation * normal(&mut random)));
            }
            rule.estimate(&samples, 0).unwrap().span().unwrap().contains(1_000.0)
        });
        hits.count() as f64 / trials as f64
    }

    #[test]
    fn an_interval_that_repetitions_stop_at_holds_the_mean_in_95_percent_of_trials() {
        // The worst spread is 1.5 to 2 times the half-width asked for.
        for most in [10, 20, 100] {
            for widths in [0.4, 0.8, 1.2, 1.5, 2.0, 3.0] {
                let rule = RepeatRule::Until { half_width: 0.02, most };
                let covered = coverage(rule, 0.02 * widths, 3_000);
                assert!(covered >= 0.942, "spread of {widths} half-widths, at most {most}: {covered}");
            }
        }
    }

    #[test]
    fn bounds_are_bounded() {
        assert_eq!(RepeatRule::Times(u32::MAX).most(), MAX_REPETITIONS);
        assert_eq!(RepeatRule::Until { half_width: 0.0, most: u32::MAX }.most(), MAX_REPETITIONS);
    }
}
