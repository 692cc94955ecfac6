//! How much of what was published is so here.

use serde::{Deserialize, Serialize};
use virtbench_fence_evaluation::{Finding, Row, Verdict};

/// Counts of values and sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Published values that were measured.
    pub values: usize,
    /// Those of them whose measured mean lies in their band.
    pub values_held: usize,
    /// Sentences about the figures' shapes.
    pub sentences: usize,
    /// Those that hold.
    pub sentences_held: usize,
    /// Those that are neither held nor refuted.
    pub sentences_undecided: usize,
}

impl Tally {
    /// Of these rows and findings.
    pub fn count(rows: &[Row], findings: &[Finding]) -> Self {
        let judged: Vec<f64> = rows.iter().filter_map(Row::outside).collect();
        let sentences = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
        Self {
            values: judged.len(),
            values_held: judged.iter().filter(|outside| **outside == 0.0).count(),
            sentences: findings.len(),
            sentences_held: sentences(Verdict::Held),
            sentences_undecided: sentences(Verdict::Undecided),
        }
    }

    /// As a sentence.
    pub fn sentence(&self) -> String {
        let Self { values, values_held, sentences, sentences_held, sentences_undecided } = self;
        format!(
            "{values_held} of {values} published values lie in their bands; {sentences_held} of {sentences} sentences \
             about shapes hold, {sentences_undecided} are undecided."
        )
    }
}
