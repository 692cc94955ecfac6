//! The arithmetic of a score.

use crate::interval::CONFIDENCE;

/// The score of a tile: the geometric mean of what its members did as shares of the reference system. Nothing without
/// members; zero where one did nothing.
#[must_use]
pub fn tile_score(normalised: &[f64]) -> Option<f64> {
    if normalised.is_empty() || normalised.iter().any(|one| !one.is_finite() || *one < 0.0) {
        return None;
    }
    let logarithms: f64 = normalised.iter().map(|one| one.ln()).sum();
    Some((logarithms / normalised.len() as f64).exp())
}

/// The share of runs that hold at least, with 95 % confidence, where all of `runs` did: the one-sided bound of Clopper and
/// Pearson ("The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26, 1934). Nothing
/// without a run.
#[must_use]
pub fn at_least_share(runs: u32) -> Option<f64> {
    (runs > 0).then(|| (1.0 - CONFIDENCE).powf(1.0 / f64::from(runs)))
}
