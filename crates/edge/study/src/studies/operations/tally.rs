//! What came of the operations of a piece, in memory that does not grow with their number.

use std::collections::BTreeMap;

use virtbench_operations::Choice;
use virtbench_platforms::Performed;
use virtbench_record::{CloneKind, JobSummary, OperationKind, OperationNumbers, Phase, Phases};
use virtbench_units::{LatencyRecorder, LatencySummary};

/// Failures whose words are kept.
const MOST_WORDS: usize = 5;

#[derive(Default)]
struct OfKind {
    numbers: OperationNumbers,
    latency: LatencyRecorder,
    phases: BTreeMap<Phase, LatencyRecorder>,
}

impl OfKind {
    fn add(&mut self, phases: &Phases, performed: &Performed) {
        self.numbers.retries += u64::from(performed.retries);
        if let Err(failure) = &performed.result {
            *self.numbers.failed.entry(failure.kind).or_default() += 1;
            return;
        }
        self.numbers.done += 1;
        self.latency.record(phases.total_ns());
        for phase in Phase::ALL {
            if let Some(length_ns) = phases.get(phase) {
                self.phases.entry(phase).or_default().record(length_ns);
            }
        }
        match &performed.job {
            None => {}
            Some(Err(why)) => drop(self.numbers.job_unavailable.get_or_insert_with(|| why.clone())),
            Some(Ok(figures)) => {
                for (figure, value) in figures {
                    add_to(self.numbers.job.entry(*figure).or_default(), *value);
                }
            }
        }
    }

    fn finished(mut self) -> OperationNumbers {
        self.numbers.latency_ns = self.latency.summary();
        let phases = self.phases.iter();
        self.numbers.phases_ns =
            phases.filter_map(|(phase, lengths)| Some((*phase, lengths.summary()?))).collect();
        if self.numbers.done > 0 {
            self.numbers.histogram = self.latency.encode_histogram().ok();
        }
        self.numbers
    }
}

fn add_to(summary: &mut JobSummary, value: u64) {
    summary.jobs += 1;
    summary.mean += (value as f64 - summary.mean) / summary.jobs as f64;
    summary.most = summary.most.max(value);
}

/// The result of all operations of a piece.
pub(super) struct Tallied {
    /// By kind.
    pub(super) operations: BTreeMap<OperationKind, OperationNumbers>,
    /// Of clones, by the way in which disks are made.
    pub(super) clones: BTreeMap<CloneKind, OperationNumbers>,
    /// Of all that were done.
    pub(super) latency_ns: Option<LatencySummary>,
    /// Words of the first failures.
    pub(super) first_failures: Vec<String>,
}

/// Counts and latencies by kind.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<OperationKind, OfKind>,
    clones: BTreeMap<CloneKind, OfKind>,
    all: LatencyRecorder,
    words: Vec<String>,
}

impl Tally {
    /// Adds an operation; `phases` are those with the time it waited.
    pub(super) fn add(&mut self, choice: &Choice, phases: &Phases, performed: &Performed) {
        self.kinds.entry(choice.kind).or_default().add(phases, performed);
        if let Some(way) = choice.clone {
            self.clones.entry(way).or_default().add(phases, performed);
        }
        match &performed.result {
            Ok(()) => self.all.record(phases.total_ns()),
            Err(failure) if self.words.len() < MOST_WORDS => {
                self.words.push(format!("{}: {failure}", choice.kind.name()));
            }
            Err(_) => {}
        }
    }

    /// What it comes to; ways to clone only where there were several.
    pub(super) fn numbers(self) -> Tallied {
        let clones = if self.clones.len() > 1 { self.clones } else { BTreeMap::new() };
        Tallied {
            operations: self.kinds.into_iter().map(|(kind, one)| (kind, one.finished())).collect(),
            clones: clones.into_iter().map(|(way, one)| (way, one.finished())).collect(),
            latency_ns: self.all.summary(),
            first_failures: self.words,
        }
    }
}
