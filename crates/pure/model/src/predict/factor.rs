//! How many times as long a part of the work takes on the subject.

use super::sampling::Sample;

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
