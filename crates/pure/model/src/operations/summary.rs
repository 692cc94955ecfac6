//! A study of management operations as programs read it.

use virtbench_record::{
    CloneNumbers, Conclusion, DensityNumbers, LatencyNumbers, ManagementNumbers, OperationsStepNumbers,
    OperationsSummary, TenantNumbers,
};

use super::analysis::{OperationsAnalysis, StepAnalysis};
use super::kinds::KindAnalysis;
use super::management::ManagementAnalysis;

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_operations(conclusion: Conclusion, analysis: &OperationsAnalysis) -> OperationsSummary {
    let density = analysis.growth.iter().map(|(kind, growth)| {
        (*kind, DensityNumbers { factor: growth.factor, exponent: growth.exponent, bend: growth.bend })
    });
    let tenants = analysis.tenants.iter().map(|one| TenantNumbers {
        vms: one.vms,
        per_minute: one.per_minute,
        iops: one.iops.map(Into::into),
        p99: one.p99.map(Into::into),
    });
    OperationsSummary {
        conclusion,
        steps: analysis.steps.iter().map(step).collect(),
        density: density.collect(),
        clones: analysis.steps.iter().flat_map(clones).collect(),
        tenants: tenants.collect(),
        sustained_per_minute: analysis.sustained_per_minute,
        incomplete: analysis.incomplete.clone(),
    }
}

fn step(step: &StepAnalysis) -> OperationsStepNumbers {
    OperationsStepNumbers {
        vms: step.vms,
        per_minute: step.per_minute,
        achieved_per_minute: step.achieved.map(Into::into),
        score_per_minute: step.achieved.map(Into::into),
        kept_up: step.kept_up,
        mean_ns: step.latency_ns[0].map(Into::into),
        p95_ns: step.latency_ns[1].map(Into::into),
        intended: step.intended,
        not_issued: step.not_issued,
        management: step.management.iter().map(management).collect(),
        management_unavailable: step.management_unavailable.clone(),
        operations: step.kinds.iter().map(|(kind, one)| (*kind, latency(one))).collect(),
    }
}

fn management(one: &ManagementAnalysis) -> ManagementNumbers {
    ManagementNumbers {
        name: one.name.clone(),
        cpu_percent: one.cpu_percent,
        cpu_ns_each: one.cpu_ns_each,
        resident_bytes: one.resident_bytes,
    }
}

fn clones(step: &StepAnalysis) -> impl Iterator<Item = CloneNumbers> + '_ {
    step.clones.iter().map(|one| CloneNumbers {
        vms: step.vms,
        per_minute: step.per_minute,
        way: one.way,
        clone: latency(&one.kind),
        ratio: one.ratio.map(Into::into),
    })
}

fn latency(one: &KindAnalysis) -> LatencyNumbers {
    let [p50_ns, p90_ns, p99_ns] = one.percentiles_ns.map(|estimate| estimate.map(Into::into));
    LatencyNumbers {
        done: one.done,
        failed: one.failed.clone(),
        throughput_per_minute: one.throughput.map(Into::into),
        mean_ns: one.mean_and_p95_ns[0].map(Into::into),
        p50_ns,
        p90_ns,
        p95_ns: one.mean_and_p95_ns[1].map(Into::into),
        p99_ns,
        phases_ns: one.phases_ns.clone(),
        job: one.job.clone(),
        job_unavailable: one.job_unavailable.clone(),
    }
}
