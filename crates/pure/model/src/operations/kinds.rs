//! What several pieces of a run come to, by kind: of operation, of way to make a clone's disk, of cost to tenants, of use by
//! the management stack.

use std::collections::BTreeMap;

use virtbench_record::{
    CloneKind, FailureKind, JobFigure, OperationNumbers, OperationsMeasured, OperationsPlan,
    OperationsRecord, Phase, TenantMeasured,
};

use crate::interval::{Estimate, FigureKind};
use crate::ratio::{Ratio, paired_ratio};

/// Operations of one kind, over the pieces of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct KindAnalysis {
    /// Those that did what they are for.
    pub done: u64,
    /// Those that did not.
    pub failed: BTreeMap<FailureKind, u64>,
    /// The median, the 90th and the 99th percentile of the latency from the intended start, in nanoseconds: each piece is a
    /// sample.
    pub percentiles_ns: [Option<Estimate>; 3],
    /// The mean and the 95th percentile, likewise: what [Platform 2014] tells of each operation.
    pub mean_and_p95_ns: [Option<Estimate>; 2],
    /// Done a minute in the steady state; nothing in what earlier versions measured.
    pub throughput: Option<Estimate>,
    /// Mean time in each phase, in nanoseconds.
    pub phases_ns: BTreeMap<Phase, f64>,
    /// What the platform told of them as jobs of its own: means.
    pub job: BTreeMap<JobFigure, f64>,
    /// Why it did not tell of some that it does as jobs.
    pub job_unavailable: Option<String>,
}

impl KindAnalysis {
    /// The median, in nanoseconds.
    #[must_use]
    pub fn median_ns(&self) -> Option<f64> {
        self.percentiles_ns[0].map(|estimate| estimate.mean)
    }

    /// Mean of the whole latency, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.phases_ns.values().sum()
    }
}

/// What these pieces come to.
pub(super) fn one_kind(pieces: &[&OperationNumbers], seed: u64) -> KindAnalysis {
    let mut failed: BTreeMap<FailureKind, u64> = BTreeMap::new();
    for (failure, count) in pieces.iter().flat_map(|piece| &piece.failed) {
        *failed.entry(*failure).or_default() += count;
    }
    let estimate = |percentile: fn(&virtbench_units::LatencySummary) -> f64| {
        let samples: Vec<f64> =
            pieces.iter().filter_map(|piece| Some(percentile(piece.latency_ns.as_ref()?))).collect();
        FigureKind::Positive.estimate(&samples, seed)
    };
    let done: u64 = pieces.iter().map(|piece| piece.done).sum();
    let mut phases_ns: BTreeMap<Phase, f64> = BTreeMap::new();
    for piece in pieces {
        for (phase, lengths) in &piece.phases_ns {
            *phases_ns.entry(*phase).or_default() += lengths.mean * piece.done as f64 / done.max(1) as f64;
        }
    }
    let percentiles_ns =
        [estimate(|one| one.p50 as f64), estimate(|one| one.p90 as f64), estimate(|one| one.p99 as f64)];
    let mean_and_p95_ns = [estimate(|one| one.mean), estimate(|one| one.p95 as f64)];
    let job_unavailable = pieces.iter().find_map(|piece| piece.job_unavailable.clone());
    KindAnalysis {
        done,
        failed,
        percentiles_ns,
        mean_and_p95_ns,
        throughput: None,
        phases_ns,
        job: jobs(pieces),
        job_unavailable,
    }
}

/// Means of what was told of jobs.
fn jobs(pieces: &[&OperationNumbers]) -> BTreeMap<JobFigure, f64> {
    let mut sums: BTreeMap<JobFigure, (f64, u64)> = BTreeMap::new();
    for (figure, one) in pieces.iter().flat_map(|piece| &piece.job) {
        let sum = sums.entry(*figure).or_default();
        *sum = (sum.0 + one.mean * one.jobs as f64, sum.1 + one.jobs);
    }
    sums.into_iter().map(|(figure, (sum, jobs))| (figure, sum / jobs.max(1) as f64)).collect()
}

/// A way to make clones' disks.
#[derive(Debug, Clone, PartialEq)]
pub struct CloneAnalysis {
    /// The way.
    pub way: CloneKind,
    /// What came of it.
    pub kind: KindAnalysis,
    /// Its median as a multiple of that of the first way; nothing for the first.
    pub ratio: Option<Ratio>,
}

/// In the order of the plan; nothing where there is one way alone.
pub(super) fn analyse_clones(
    ways: &[CloneKind],
    pieces: &[(u32, &OperationsMeasured)],
    seed: u64,
) -> Vec<CloneAnalysis> {
    let of = |way: CloneKind| -> BTreeMap<u32, &OperationNumbers> {
        pieces.iter().filter_map(|(piece, one)| Some((*piece, one.clones.get(&way)?))).collect()
    };
    let medians = |way: CloneKind| -> BTreeMap<u32, f64> {
        let known = of(way).into_iter();
        known.filter_map(|(piece, one)| Some((piece, one.latency_ns?.p50 as f64))).collect()
    };
    let first = ways.first().copied().unwrap_or_default();
    let measured = ways.iter().filter(|way| !of(**way).is_empty());
    measured
        .map(|way| CloneAnalysis {
            way: *way,
            kind: one_kind(&of(*way).into_values().collect::<Vec<_>>(), seed),
            ratio: (*way != first).then(|| paired_ratio(&medians(first), &medians(*way), seed)).flatten(),
        })
        .collect()
}

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

/// Processes of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagementAnalysis {
    /// Their name, such as `libvirtd`.
    pub name: String,
    /// Processor time in percent of one processor: the mean over pieces, each weighed by its length.
    pub cpu_percent: f64,
    /// Processor time for an operation that was done, in nanoseconds; nothing where none was.
    pub cpu_ns_each: Option<f64>,
    /// The most resident memory at the end of a piece, in bytes.
    pub resident_bytes: u64,
}

/// By name; and why pieces lack some, once each.
pub(super) fn analyse_management(pieces: &[&OperationsMeasured]) -> (Vec<ManagementAnalysis>, Vec<String>) {
    let mut names: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    let mut unavailable: Vec<String> = Vec::new();
    let (mut length_ns, mut done) = (0.0, 0);
    for piece in pieces {
        let Some(management) = &piece.management else { continue };
        unavailable.extend(management.unavailable.clone());
        if management.processes.is_empty() {
            continue;
        }
        length_ns += piece.elapsed_ns as f64;
        done += piece.done();
        let mut resident: BTreeMap<&str, u64> = BTreeMap::new();
        for process in &management.processes {
            names.entry(&process.name).or_default().0 +=
                process.cpu_percent / 100.0 * piece.elapsed_ns as f64;
            *resident.entry(&process.name).or_default() += process.resident_bytes;
        }
        for (name, bytes) in resident {
            let most = &mut names.entry(name).or_default().1;
            *most = bytes.max(*most);
        }
    }
    unavailable.sort();
    unavailable.dedup();
    let processes = names.into_iter().map(|(name, (cpu_ns, resident_bytes))| ManagementAnalysis {
        name: name.to_owned(),
        cpu_percent: 100.0 * cpu_ns / f64::max(length_ns, 1.0),
        cpu_ns_each: (done > 0).then(|| cpu_ns / done as f64),
        resident_bytes,
    });
    (processes.collect(), unavailable)
}

#[cfg(test)]
#[path = "clones_tests.rs"]
mod clones_tests;

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tenants_tests;

#[cfg(test)]
mod tests {
    use virtbench_record::{ManagementProcess, ManagementUse, OperationKind, OperationNumbers};

    use super::*;

    fn piece(seconds: u64, done: u64, management: ManagementUse) -> OperationsMeasured {
        let numbers = OperationNumbers { done, ..OperationNumbers::default() };
        OperationsMeasured {
            elapsed_ns: seconds * 1_000_000_000,
            operations: BTreeMap::from([(OperationKind::PowerOn, numbers)]),
            management: Some(management),
            ..OperationsMeasured::default()
        }
    }

    fn process(pid: u32, cpu_percent: f64, resident_bytes: u64) -> ManagementProcess {
        ManagementProcess { name: "vpxd".into(), pid, cpu_percent, resident_bytes }
    }

    #[test]
    fn processes_of_a_name_are_summed_and_a_piece_without_any_says_why() {
        let two =
            ManagementUse { processes: vec![process(1, 20.0, 5), process(2, 20.0, 6)], unavailable: None };
        let one = ManagementUse { processes: vec![process(1, 10.0, 7)], unavailable: None };
        let none = ManagementUse { processes: Vec::new(), unavailable: Some("it ended".into()) };
        let pieces = [piece(10, 6, two), piece(20, 2, one), piece(10, 5, none)];
        let (processes, unavailable) = analyse_management(&pieces.iter().collect::<Vec<_>>());
        let [found] = &processes[..] else { panic!("{processes:?}") };
        // Four seconds of a processor in ten, and two in twenty.
        assert!((found.cpu_percent - 20.0).abs() < 1e-9, "{found:?}");
        assert!((found.cpu_ns_each.unwrap() - 0.75e9).abs() < 1.0, "{found:?}");
        assert_eq!((found.resident_bytes, unavailable), (11, vec!["it ended".to_owned()]));
    }
}
