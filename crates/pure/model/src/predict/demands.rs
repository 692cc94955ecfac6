//! What kinds of work cost on a machine, learnt from reference applications.
//!
//! Each reference application says what it asks of its machine for one operation, kind by kind (system calls, faults,
//! switches, bytes, user code), and what the operation takes on the subject. Costs of the kinds are the least squares
//! over all of them, none below zero, every reference weighted by its relative error. What is left over where an
//! application is predicted from the others alone (leave-one-out) is how far the next one may be off.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{Footprint, Reference, ReferenceRun};

use super::least_squares::non_negative;

/// Weight of a piece of work that is repeated over and over, against that of an application.
const PIECE_WEIGHT: f64 = 0.5;
/// Decides between kinds that always come together.
const RIDGE: f64 = 4e-4;
/// With fewer applications nothing is known of the next.
const FEWEST_APPLICATIONS: usize = 4;
/// Kinds beside those that are counted.
const COPIED: &str = "copied bytes";
const USER: &str = "user code";
const SYSTEM: &str = "kernel code";

/// What an operation asks of its machine, by kind: how often, how many bytes, or seconds on the reference.
pub(super) type Work = BTreeMap<String, f64>;

/// The work of one operation, where `per_second` of them were done.
pub(super) fn work(footprint: &Footprint, per_second: f64) -> Work {
    let operations = footprint.elapsed_ns as f64 / 1e9 * per_second;
    let counted = footprint.counts.iter().map(|(name, count)| (name.clone(), *count as f64 / operations));
    let beside = [
        (COPIED, footprint.copied_bytes as f64),
        (USER, footprint.cpu_ns[0] as f64 / 1e9),
        (SYSTEM, footprint.cpu_ns[1] as f64 / 1e9),
    ];
    counted.chain(beside.map(|(name, much)| (name.to_owned(), much / operations))).collect()
}

/// An application, or a piece of work.
#[derive(Debug, Clone)]
struct Example {
    work: Work,
    /// What the operation takes, in seconds.
    takes_s: f64,
    weight: f64,
}

/// Costs of kinds of work, in seconds each.
#[derive(Debug, Clone, PartialEq)]
struct Costs(BTreeMap<String, f64>);

impl Costs {
    fn of(examples: &[&Example]) -> Self {
        let kinds: BTreeSet<&String> = examples.iter().flat_map(|example| example.work.keys()).collect();
        let row = |example: &&Example| -> Vec<f64> {
            let much = |kind: &&String| example.work.get(*kind).copied().unwrap_or(0.0);
            kinds.iter().map(|kind| much(kind) / example.takes_s * example.weight).collect()
        };
        let rows: Vec<Vec<f64>> = examples.iter().map(row).collect();
        let targets: Vec<f64> = examples.iter().map(|example| example.weight).collect();
        let costs = non_negative(&rows, &targets, RIDGE);
        Self(kinds.into_iter().cloned().zip(costs).collect())
    }

    fn takes_s(&self, work: &Work) -> f64 {
        work.iter().map(|(kind, much)| much * self.0.get(kind).copied().unwrap_or(0.0)).sum()
    }
}

/// What work costs on the subject, and how sure that is.
#[derive(Debug, Clone)]
pub(super) struct Demands {
    costs: Costs,
    /// Standard deviation of the logarithm of what an application takes, from leave-one-out.
    pub deviation: f64,
    /// Applications that it was learnt from, pieces not counted.
    pub applications: usize,
}
