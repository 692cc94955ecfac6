//! The highest rate of operations that a platform sustains, from the pieces measured so far.

use virtbench_record::{OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord};

use crate::saturation::{RunResult, SaturationRules, SaturationSearch};
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
        search.observe(result(measured));
        pieces += 1;
    }
    Some((search, pieces))
}

fn result(measured: &OperationsMeasured) -> RunResult {
    let latency = measured.latency_ns;
    RunResult {
        achieved: measured.per_minute() / 60.0,
        mean_ns: latency.map(|latency| latency.mean),
        p99_ns: latency.map(|latency| latency.p99 as f64),
        limited_ns: latency.map(|latency| latency.p95 as f64),
    }
}
