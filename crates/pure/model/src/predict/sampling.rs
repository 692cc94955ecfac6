//! Intervals by drawing inputs at random from what is known of their errors (Monte Carlo; JCGM 101:2008):
//! among them how many times as long a part of the work takes on the subject.

use statrs::distribution::{ContinuousCDF, Normal};
use virtbench_units::Random;

use crate::interval::{CONFIDENCE, Span};

/// Draws of an interval: ten lie beyond each of its limits.
pub(super) const SAMPLES: usize = 400;

/// One draw of all inputs.
#[derive(Debug)]
pub(super) struct Sample {
    random: Random,
    normal: Option<Normal>,
}

impl Sample {
    /// Uniform between 0 and 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.random.unit()
    }

    /// A standard normal variate.
    pub(super) fn normal(&mut self) -> f64 {
        let share = self.random.unit().clamp(1e-12, 1.0 - 1e-12);
        self.normal.map_or(0.0, |normal| normal.inverse_cdf(share))
    }
}

/// The 95 % interval of what `draw` gives; draws without a value are passed over. `None` where most are.
pub(super) fn interval(
    samples: usize,
    seed: u64,
    draw: impl FnMut(&mut Sample) -> Option<f64>,
) -> Option<Span> {
    let values = draws(samples, seed, draw);
    if values.len() * 2 < samples {
        return None;
    }
    span(&values, CONFIDENCE)
}

/// What `draw` gives, ascending; draws without a value are passed over.
pub(super) fn draws(samples: usize, seed: u64, mut draw: impl FnMut(&mut Sample) -> Option<f64>) -> Vec<f64> {
    let mut sample = Sample { random: Random::new(seed), normal: Normal::new(0.0, 1.0).ok() };
    let mut values: Vec<f64> =
        (0..samples).filter_map(|_| draw(&mut sample)).filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The middle `confidence` of draws that are in ascending order; none of none.
pub(super) fn span(sorted: &[f64], confidence: f64) -> Option<Span> {
    let tail = (1.0 - confidence) / 2.0;
    let ends = || Span { low: quantile(sorted, tail), high: quantile(sorted, 1.0 - tail) };
    (!sorted.is_empty()).then(ends)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to len - 1
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// How many times as long a part of the work takes on the subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Factor {
    /// Logarithm of the geometric mean over its pieces.
    pub ln: f64,
    /// Standard deviation of the logarithms: how far another piece of the kind may be from it.
    pub deviation: f64,
}

impl Factor {
    pub(super) fn of_logarithms(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        (!values.is_empty()).then_some(Self { ln: mean, deviation })
    }

    pub(super) fn drawn(self, sample: &mut Sample) -> f64 {
        (self.ln + self.deviation * sample.normal()).exp()
    }

    pub(super) fn mean(self) -> f64 {
        self.ln.exp()
    }
}
