//! What came of the operations of a piece, in memory that does not grow with their number.

use std::collections::BTreeMap;

use virtbench_platforms::Performed;
use virtbench_record::{OperationKind, OperationNumbers, Phase, Phases};
use virtbench_units::{LatencyRecorder, LatencySummary};

/// Failures whose words are kept.
const MOST_WORDS: usize = 5;

#[derive(Default)]
struct OfKind {
    numbers: OperationNumbers,
    latency: LatencyRecorder,
    phases: BTreeMap<Phase, LatencyRecorder>,
}

type Numbers = (BTreeMap<OperationKind, OperationNumbers>, Option<LatencySummary>, Vec<String>);

/// Counts and latencies by kind.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<OperationKind, OfKind>,
    all: LatencyRecorder,
    words: Vec<String>,
}

impl Tally {
    /// Adds an operation; `phases` are those with the time it waited.
    pub(super) fn add(&mut self, kind: OperationKind, phases: &Phases, performed: &Performed) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.numbers.retries += u64::from(performed.retries);
        match &performed.result {
            Ok(()) => {
                of_kind.numbers.done += 1;
                of_kind.latency.record(phases.total_ns());
                self.all.record(phases.total_ns());
                for phase in Phase::ALL {
                    if let Some(length_ns) = phases.get(phase) {
                        of_kind.phases.entry(phase).or_default().record(length_ns);
                    }
                }
            }
            Err(failure) => {
                *of_kind.numbers.failed.entry(failure.kind).or_default() += 1;
                if self.words.len() < MOST_WORDS {
                    self.words.push(format!("{}: {failure}", kind.name()));
                }
            }
        }
    }

    /// By kind, of all that were done, and the words of the first failures.
    pub(super) fn numbers(self) -> Numbers {
        let finished = |mut of_kind: OfKind| {
            of_kind.numbers.latency_ns = of_kind.latency.summary();
            let phases = of_kind.phases.iter();
            of_kind.numbers.phases_ns =
                phases.filter_map(|(phase, lengths)| Some((*phase, lengths.summary()?))).collect();
            if of_kind.numbers.done > 0 {
                of_kind.numbers.histogram = of_kind.latency.encode_histogram().ok();
            }
            of_kind.numbers
        };
        let kinds = self.kinds.into_iter().map(|(kind, of_kind)| (kind, finished(of_kind)));
        (kinds.collect(), self.all.summary(), self.words)
    }
}
