//! What to change first: what was varied in the run and made a difference, the greatest difference first; then what rules have found.

use virtbench_record::SamplesRecord;

use super::insights::{Insight, Outcome};
use super::observed::all_disks;

/// An adapter has to do so many times as much as the usual one.
const BETTER: f64 = 1.05;

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What to do, and what speaks for it.
    pub sentence: String,
    /// How many times as much was measured with it; nothing where it was not tried.
    pub gain: Option<f64>,
}

/// The changes, the greatest measured gain first.
#[must_use]
pub fn advice(records: &[SamplesRecord], insights: &[Insight]) -> Vec<Advice> {
    let mut all: Vec<Advice> = best_adapter(records).into_iter().collect();
    all.extend(insights.iter().filter_map(|insight| {
        let Outcome::Fires(finding) = &insight.outcome else { return None };
        Some(Advice { sentence: finding.change.clone(), gain: finding.gain })
    }));
    all.sort_by(|one, other| other.gain.unwrap_or(0.0).total_cmp(&one.gain.unwrap_or(0.0)));
    all
}

/// The adapter that did most, where that is not the first one.
fn best_adapter(records: &[SamplesRecord]) -> Option<Advice> {
    let disks = all_disks(records);
    let first = disks.first()?;
    let best = disks
        .iter()
        .max_by(|one, other| one.throughput_bytes_per_s.total_cmp(&other.throughput_bytes_per_s))?;
    let gain = best.throughput_bytes_per_s / first.throughput_bytes_per_s;
    (gain >= BETTER).then(|| Advice {
        sentence: format!("Give VMs the disk adapter {} instead of {}.", best.setup, first.setup),
        gain: Some(gain),
    })
}
