//! The mean by logarithms.

/// Half and double cancel in it. It is not a number of no values; with one that is zero it is zero, with one that is without end it is
/// without end.
pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
