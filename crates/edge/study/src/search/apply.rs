//! What a search needs of the world: something that applies a load.

use std::fmt::{Debug, Display};

use thiserror::Error;
use virtbench_record::LoadOutcome;
use virtbench_workload::{LoadSpec, MAX_RATE};

/// Applies loads to one target, one after the other.
pub trait Load {
    /// Why a load could not be applied at all.
    type Error: Debug + Display;

    /// Applies a load and returns what came of it.
    ///
    /// # Errors
    /// The load could not be applied; operations that failed are counted in the outcome.
    fn apply(&mut self, spec: &LoadSpec) -> Result<LoadOutcome, Self::Error>;
}

/// A search that ended before its time.
#[derive(Debug, Error, PartialEq)]
pub enum SearchError<E: Debug + Display> {
    /// A load could not be applied.
    #[error("{0}")]
    Load(E),
    /// Operations failed: figures of a target that errs say nothing of one that works.
    #[error("operations failed on {target}: {why}")]
    Operations {
        /// The target.
        target: String,
        /// The kinds of failures and their numbers.
        why: String,
    },
    /// More was done than was offered: the engine did not pace its operations.
    #[error(
        "{achieved:.0} operations a second were completed where {offered:.0} were offered: the load was not \
         applied as an open loop, a defect of virtbench"
    )]
    NotPaced {
        /// Operations per second offered.
        offered: f64,
        /// Operations per second completed.
        achieved: f64,
    },
    /// The search reached a rate that no load can offer.
    #[error(
        "the target does more than an open loop can offer ({per_second:.0} of at most {MAX_RATE:.0} operations a \
         second): a null target has no saturation to be found; give it a latency with --fault delay=50us@100%, or \
         name a slower target"
    )]
    TooFast {
        /// The rate that was to be offered, operations per second.
        per_second: f64,
    },
    /// It was asked to stop.
    #[error("stopped before the search was over")]
    Stopped,
}

/// Applies one load of a search and refuses an outcome that a search must not be built on.
pub(crate) fn apply_clean<L: Load>(
    load: &mut L,
    spec: &LoadSpec,
) -> Result<LoadOutcome, SearchError<L::Error>> {
    let outcome = load.apply(spec).map_err(SearchError::Load)?;
    if outcome.errors > 0 {
        let kinds: Vec<String> =
            outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        return Err(SearchError::Operations { target: outcome.target.path, why: kinds.join(", ") });
    }
    if outcome.interrupted {
        return Err(SearchError::Stopped);
    }
    if let Some(rate) = spec.rate {
        let achieved = outcome.total.iops;
        // Random arrivals in a short run may exceed their rate, but not by this.
        if achieved > 1.25 * rate.per_second + 20.0 {
            return Err(SearchError::NotPaced { offered: rate.per_second, achieved });
        }
    }
    Ok(outcome)
}

#[cfg(test)]
pub(crate) mod fake {
    //! A target that lives in a formula.

    use std::convert::Infallible;

    use virtbench_record::{DirectionStats, LoadOutcome, TargetFacts};
    use virtbench_units::LatencyRecorder;
    use virtbench_workload::LoadSpec;

    use super::Load;

    /// A load whose rate (operations per second) and latency (ns) are given by a function.
    pub(crate) struct Fake<F>(pub F);

    impl<F: FnMut(&LoadSpec) -> (f64, u64)> Load for Fake<F> {
        type Error = Infallible;

        fn apply(&mut self, spec: &LoadSpec) -> Result<LoadOutcome, Infallible> {
            let (iops, latency_ns) = (self.0)(spec);
            let mut latency = LatencyRecorder::new();
            latency.record(latency_ns);
            let bytes_per_second = iops * spec.access.largest_block_bytes() as f64;
            let latency_ns = latency.summary();
            let total = DirectionStats { iops, bytes_per_second, latency_ns, ..DirectionStats::default() };
            Ok(LoadOutcome {
                total,
                ..LoadOutcome::empty(spec.clone(), TargetFacts::null(spec.region_bytes))
            })
        }
    }

    /// A load of 4 KiB random reads for tests.
    pub(crate) fn spec() -> LoadSpec {
        use virtbench_workload::{AccessLine, AccessSpec};
        LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 30)
    }
}
