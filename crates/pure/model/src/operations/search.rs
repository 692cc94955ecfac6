//! The highest rate of operations that a platform sustains, from the pieces measured so far.

use virtbench_record::{OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord, SteadyWindow};

use crate::saturation::{Probe, RunResult, SaturationRules, SaturationSearch};
use crate::slo::{LatencyMetric, Slo};

/// The search as it stands at a number of VMs, and how many pieces it has seen; nothing where no rate is searched.
#[must_use]
pub fn search_rate(
    plan: &OperationsPlan,
    vms: u32,
    records: &[OperationsRecord],
) -> Option<(SaturationSearch, u32)> {
    let OperationsLoad::Max { limit_ns } = plan.load else { return None };
    let rules = SaturationRules {
        slo: Some(Slo { figure: LatencyMetric::P95, limit_ns }),
        // Operations are few: what a minute holds varies by a tenth.
        slack: 0.05,
        resolution: 0.1,
        points: 0,
        ..SaturationRules::new(plan.piece_ns as f64 / 1e9)
    };
    let mut search = SaturationSearch::new(rules);
    let mut pieces = 0;
    for measured in records.iter().filter(|record| record.vms == vms).filter_map(OperationsRecord::measured) {
        let offered = match search.next_probe() {
            Some(Probe::Offered { per_second }) => Some(per_second),
            Some(Probe::Closed) | None => None,
        };
        search.observe(result(measured, offered));
        pieces += 1;
    }
    Some((search, pieces))
}

/// A rate whose backlog stays as it is, is done: fewer may have arrived by chance. One of which every twentieth operation found no VM
/// or no answer is not.
fn result(measured: &OperationsMeasured, offered: Option<f64>) -> RunResult {
    let latency = measured.latency_ns;
    let reached = measured.not_reached() as f64 <= 0.05 * measured.intended as f64;
    let kept_up = reached && measured.steady.as_ref().and_then(SteadyWindow::kept_up) == Some(true);
    let done = measured.per_minute() / 60.0;
    RunResult {
        achieved: offered
            .filter(|_| kept_up && measured.done() > 0)
            .map_or(done, |offered| done.max(offered)),
        mean_ns: latency.map(|latency| latency.mean),
        p99_ns: latency.map(|latency| latency.p99 as f64),
        limited_ns: latency.map(|latency| latency.p95 as f64),
    }
}
