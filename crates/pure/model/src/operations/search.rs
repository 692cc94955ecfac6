//! The highest rate of operations that a platform sustains, from the pieces measured so far.

use virtbench_record::{OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord};

use crate::saturation::{Probe, RunResult, SaturationRules, SaturationSearch};
use crate::slo::{LatencyMetric, Slo};

/// Of operations that arrive at random, so many are due in a piece on average for it to tell whether they are kept up with: fewer than one
/// in a hundred pieces then holds none.
const LEAST_DUE: f64 = 5.0;

/// The search as it stands at a number of VMs, and how many pieces it has seen; nothing where no rate is searched.
#[must_use]
pub fn search_rate(
    plan: &OperationsPlan,
    vms: u32,
    records: &[OperationsRecord],
) -> Option<(SaturationSearch, u32)> {
    let OperationsLoad::Max { limit_ns } = plan.load else { return None };
    let rules = rules(limit_ns, plan.piece_ns);
    let mut search = SaturationSearch::new(rules);
    let mut pieces = 0;
    for measured in
        records.iter().filter(|record| record.key.vms == vms).filter_map(OperationsRecord::measured)
    {
        let offered = match search.next_probe() {
            Some(Probe::Offered { per_second }) => Some(per_second),
            Some(Probe::Closed) | None => None,
        };
        search.observe(result(measured, offered));
        pieces += 1;
    }
    Some((search, pieces))
}

fn rules(limit_ns: u64, piece_ns: u64) -> SaturationRules {
    SaturationRules {
        slo: Some(Slo { figure: LatencyMetric::P95, limit_ns }),
        // Operations are few: what a minute holds varies by a tenth.
        slack: 0.05,
        // The backlog tells whether a rate is kept up with, however many arrived.
        poisson: false,
        resolution: 0.1,
        points: 0,
        least_per_second: least_per_second(piece_ns),
        ..SaturationRules::new(piece_ns as f64 / 1e9)
    }
}

/// The lowest rate that a piece of `piece_ns` nanoseconds tells anything about, in operations per second.
pub(super) fn least_per_second(piece_ns: u64) -> f64 {
    LEAST_DUE * 1e9 / piece_ns.max(1) as f64
}

/// The most pieces that a search at a number of VMs takes.
#[must_use]
pub fn most_pieces(plan: &OperationsPlan) -> u32 {
    rules(0, plan.piece_ns).most_runs()
}

/// A rate whose backlog stays as it is, is done: fewer may have arrived by chance. One of which more than every twentieth operation
/// failed, or found no VM or no answer, is not.
fn result(measured: &OperationsMeasured, offered: Option<f64>) -> RunResult {
    let latency = measured.latency_ns;
    let done = measured.per_minute() / 60.0;
    RunResult {
        achieved: offered
            .filter(|_| kept_up(measured) == Some(true))
            .map_or(done, |offered| done.max(offered)),
        mean_ns: latency.map(|latency| latency.mean),
        p99_ns: latency.map(|latency| latency.p99 as f64),
        limited_ns: latency.map(|latency| latency.p95 as f64),
    }
}

/// Whether a piece was kept up with: its backlog stayed as it was, and at most every twentieth operation failed. Nothing where the
/// piece does not tell.
pub(super) fn kept_up(measured: &OperationsMeasured) -> Option<bool> {
    let stayed = measured.steady.as_ref()?.kept_up?;
    let failed = measured.intended.saturating_sub(measured.done());
    Some(stayed && measured.done() > 0 && failed as f64 <= 0.05 * measured.intended as f64)
}
