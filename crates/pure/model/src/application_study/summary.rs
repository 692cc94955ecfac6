//! A study of an application as programs read it.

use virtbench_record::{
    ApplicationMetricNumbers, ApplicationPlan, ApplicationStudySide, ApplicationStudySummary, Conclusion,
};

use super::analysis::{ApplicationSideFound, ApplicationStudyAnalysis, MetricFound};

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_application_study(
    conclusion: Conclusion,
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
) -> ApplicationStudySummary {
    let sides = analysis.sides.iter().map(|one| side(plan, one));
    ApplicationStudySummary {
        conclusion,
        metrics: plan.metrics.clone(),
        neighbours: plan.neighbours,
        sides: sides.collect(),
    }
}

fn side(plan: &ApplicationPlan, one: &ApplicationSideFound) -> ApplicationStudySide {
    let named = plan.metrics.iter().map(|metric| metric.name.clone()).zip(one.metrics.iter().map(numbers));
    ApplicationStudySide {
        side: one.side.clone(),
        metrics: named.collect(),
        path: one.path.clone(),
        tier_paths: one.tier_paths.clone(),
        host_cpu_percent: one.host_cpu_percent.map(Into::into),
        failures: one.failures.clone(),
    }
}

fn numbers(found: &MetricFound) -> ApplicationMetricNumbers {
    ApplicationMetricNumbers {
        alone: found.alone.map(Into::into),
        ratio: found.against_native.map(Into::into),
        beside: found.beside.map(Into::into),
        beside_ratio: found.against_alone.map(Into::into),
        deviation_percent: found.deviation.map(|deviation| deviation.estimate.into()),
    }
}
