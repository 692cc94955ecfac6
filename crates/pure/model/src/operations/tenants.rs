//! What operations cost the tenants: each piece with operations against the one without in the same cycle.

use std::collections::BTreeMap;

use virtbench_record::{OperationsMeasured, OperationsPlan, OperationsRecord, TenantMeasured};

use crate::ratio::{Ratio, paired_ratio};

/// Tenants while operations go on, as a multiple of what they do without.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantsAnalysis {
    /// VMs to begin with.
    pub vms: u32,
    /// Operations a minute that were to start; nothing in a closed loop.
    pub per_minute: Option<f64>,
    /// I/Os per second, the mean over the tenants.
    pub iops: Option<Ratio>,
    /// 99th percentile of their latency, likewise.
    pub p99: Option<Ratio>,
}

/// A figure of a piece, the mean over the tenants.
type Figure = fn(&TenantMeasured) -> Option<f64>;

/// By number of VMs, in the order of the rates; nothing where there were no tenants.
#[must_use]
pub fn analyse_tenants(plan: &OperationsPlan, records: &[OperationsRecord]) -> Vec<TenantsAnalysis> {
    if plan.tenants.is_empty() {
        return Vec::new();
    }
    let of = |vms: u32, place: u32, figure: Figure| -> BTreeMap<u32, f64> {
        let pieces = records.iter().filter(|one| one.key.vms == vms && one.key.piece % plan.cycle() == place);
        let known =
            pieces.filter_map(|one| Some((one.key.piece / plan.cycle(), mean(one.measured()?, figure)?)));
        known.collect()
    };
    let against = |vms: u32, place: u32, figure: Figure| {
        paired_ratio(&of(vms, 0, figure), &of(vms, place, figure), plan.seed)
    };
    let steps = plan.vms.iter().flat_map(|vms| (1..plan.cycle()).map(|place| (*vms, place)));
    steps
        .map(|(vms, place)| TenantsAnalysis {
            vms,
            per_minute: plan.rate(place),
            iops: against(vms, place, |tenant| Some(tenant.iops)),
            p99: against(vms, place, |tenant| Some(tenant.latency_ns?.p99 as f64)),
        })
        .collect()
}

fn mean(measured: &OperationsMeasured, figure: Figure) -> Option<f64> {
    let figures: Vec<f64> = measured.tenants.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
