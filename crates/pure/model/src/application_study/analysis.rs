//! What the measurements of an application come to.

use std::collections::BTreeMap;

use virtbench_record::{ApplianceSide, ApplicationMeasured, ApplicationPlan, ApplicationRecord, PathCost};

use crate::deviation::{OverExperiments, deviation};
use crate::interval::Estimate;
use crate::kind::FigureKind;
use crate::ratio::{Ratio, paired_ratio};

/// One metric of one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricFound {
    /// Alone.
    pub alone: Option<Estimate>,
    /// Against the native side of as many processors, repetition by repetition; nothing natively.
    pub against_native: Option<Ratio>,
    /// Beside the neighbours.
    pub beside: Option<Estimate>,
    /// That against its value alone, repetition by repetition.
    pub against_alone: Option<Ratio>,
    /// How far it is from alone, in percent.
    pub deviation: Option<OverExperiments>,
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationSideFound {
    /// The side.
    pub side: ApplianceSide,
    /// Its metrics, in the plan's order.
    pub metrics: Vec<MetricFound>,
    /// What the path to it costs, as it was measured last.
    pub path: Option<PathCost>,
    /// What the path from it to each further tier costs, by the tier's name, as it was measured last.
    pub tier_paths: BTreeMap<String, PathCost>,
    /// Use of the host's processors alone, in percent of one.
    pub host_cpu_percent: Option<Estimate>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// All sides, in the plan's order.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationStudyAnalysis {
    /// The sides.
    pub sides: Vec<ApplicationSideFound>,
}

/// Values of one metric by repetition.
type Values = BTreeMap<u32, f64>;

/// What the records of a study come to. The plan's seed determines the resampling.
#[must_use]
pub fn analyse_application_study(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
) -> ApplicationStudyAnalysis {
    let side = |side: &ApplianceSide| {
        let of_side = || records.iter().filter(|record| record.key.side == side.name);
        let alone = of_side().filter(|record| record.key.neighbours == 0);
        let uses: Vec<f64> = alone.filter_map(|record| Some(record.measured()?.host.cpu_percent)).collect();
        let last = of_side().rev().find_map(ApplicationRecord::measured);
        ApplicationSideFound {
            side: side.clone(),
            metrics: plan.metrics.iter().map(|metric| found(plan, records, side, &metric.name)).collect(),
            path: last.and_then(|measured| measured.appliance.path.clone()),
            tier_paths: last
                .iter()
                .flat_map(|measured| &measured.tiers)
                .map(|tier| (tier.name.clone(), tier.path.clone()))
                .collect(),
            host_cpu_percent: FigureKind::Positive.estimate(&uses, plan.seed),
            failures: of_side().filter_map(|record| record.failure().map(str::to_owned)).collect(),
        }
    };
    ApplicationStudyAnalysis { sides: plan.sides.iter().map(side).collect() }
}

fn found(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
    side: &ApplianceSide,
    metric: &str,
) -> MetricFound {
    let values = |side: &ApplianceSide, neighbours: u32| -> Values {
        let of = records
            .iter()
            .filter(|record| record.key.side == side.name && record.key.neighbours == neighbours);
        of.filter_map(|record| Some((record.key.repetition, value(record.measured()?, metric)?))).collect()
    };
    let estimate = |values: &Values| {
        FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<_>>(), plan.seed)
    };
    let alone = values(side, 0);
    let native = plan.sides.iter().find(|other| side.vm && !other.vm && other.vcpus == side.vcpus);
    let mut found = MetricFound {
        alone: estimate(&alone),
        against_native: native.and_then(|native| paired_ratio(&values(native, 0), &alone, plan.seed)),
        ..MetricFound::default()
    };
    if plan.neighbours > 0 {
        let beside = values(side, plan.neighbours);
        let pairs = beside.iter().filter_map(|(repetition, beside)| Some((*alone.get(repetition)?, *beside)));
        found.deviation = deviation(pairs, plan.seed);
        found.against_alone = paired_ratio(&alone, &beside, plan.seed);
        found.beside = estimate(&beside);
    }
    found
}

fn value(measured: &ApplicationMeasured, metric: &str) -> Option<f64> {
    measured.values.get(metric).copied()
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
