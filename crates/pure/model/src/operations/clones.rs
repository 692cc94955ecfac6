//! Ways to make clones' disks, compared within each piece, in which they take turns.

use std::collections::BTreeMap;

use virtbench_record::{CloneKind, OperationNumbers, OperationsMeasured};

use super::kinds::{KindAnalysis, one_kind};
use crate::ratio::{Ratio, paired_ratio};

/// A way to make clones' disks.
#[derive(Debug, Clone, PartialEq)]
pub struct CloneAnalysis {
    /// The way.
    pub way: CloneKind,
    /// What came of it.
    pub kind: KindAnalysis,
    /// Its median as a multiple of that of the first way; nothing for the first.
    pub ratio: Option<Ratio>,
}

/// In the order of the plan; nothing where there is one way alone.
pub(super) fn analyse_clones(
    ways: &[CloneKind],
    pieces: &[(u32, &OperationsMeasured)],
    seed: u64,
) -> Vec<CloneAnalysis> {
    let of = |way: CloneKind| -> BTreeMap<u32, &OperationNumbers> {
        pieces.iter().filter_map(|(piece, one)| Some((*piece, one.clones.get(&way)?))).collect()
    };
    let medians = |way: CloneKind| -> BTreeMap<u32, f64> {
        let known = of(way).into_iter();
        known.filter_map(|(piece, one)| Some((piece, one.latency_ns?.p50 as f64))).collect()
    };
    let first = ways.first().copied().unwrap_or_default();
    let measured = ways.iter().filter(|way| !of(**way).is_empty());
    measured
        .map(|way| CloneAnalysis {
            way: *way,
            kind: one_kind(&of(*way).into_values().collect::<Vec<_>>(), seed),
            ratio: (*way != first).then(|| paired_ratio(&medians(first), &medians(*way), seed)).flatten(),
        })
        .collect()
}

#[cfg(test)]
#[path = "clones_tests.rs"]
mod tests;
