//! The arithmetic of a score.

use crate::interval::CONFIDENCE;

/// What applications weigh in a total with an infrastructure load, which has the rest (VMmark 3's rules).
pub const APPLICATIONS_WEIGHT: f64 = 0.8;

/// The total of a run: the sum of its tiles' scores, with an infrastructure load 80 % of that and 20 % of the load's score.
#[must_use]
pub fn total_score(applications: f64, infrastructure: Option<f64>) -> f64 {
    infrastructure.map_or(applications, |infrastructure| {
        APPLICATIONS_WEIGHT * applications + (1.0 - APPLICATIONS_WEIGHT) * infrastructure
    })
}

/// What a member did as a share of the reference system. Who did nothing has nothing of any reference; nothing where the reference is
/// zero and the member did something.
pub(crate) fn share_of_reference([value, reference]: [f64; 2]) -> Option<f64> {
    let share = if value == 0.0 { 0.0 } else { value / reference };
    (share.is_finite() && share >= 0.0).then_some(share)
}

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
