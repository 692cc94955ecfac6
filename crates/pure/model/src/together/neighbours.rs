//! The same workload in one VM, in two, in three, ...: who gets what ([Multi-VM 2010]).

use std::collections::BTreeMap;

use virtbench_record::{
    Better, ColocationPlan, JobOutcome, MemberMeasured, Provenance, SetPlan, SetRecord, SetStart,
};

use super::fairness::{IntervalShares, jain, lay_side_by_side, sample_stddev, worst_to_best};
use super::overload::{Overload, is_emulated, loose_start, overload};
use crate::interval::{Estimate, FigureKind};
use crate::ratio::{Ratio, paired_ratio};

/// Virtual processors against the host's ([Multi-VM 2010]: "less than, equal to, or greater than").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// Fewer virtual processors than the host has.
    Fewer,
    /// As many.
    Equal,
    /// More: they share.
    More,
    /// The machines live in environments, on processors of their own or not.
    Elsewhere,
}

impl Region {
    /// Where so many virtual processors are on a host of so many.
    #[must_use]
    pub fn new(virtual_processors: u64, processors: u32) -> Self {
        match virtual_processors.cmp(&u64::from(processors)) {
            std::cmp::Ordering::Less => Self::Fewer,
            std::cmp::Ordering::Equal => Self::Equal,
            std::cmp::Ordering::Greater => Self::More,
        }
    }

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fewer => "fewer",
            Self::Equal => "equal",
            Self::More => "more",
            Self::Elsewhere => "-",
        }
    }
}

/// What is known of a set whatever the figure.
#[derive(Debug, Clone, PartialEq)]
pub struct NeighbourSet {
    /// Its name.
    pub name: String,
    /// Machines that ran together.
    pub vms: usize,
    /// Their virtual processors against the host's.
    pub region: Region,
    /// Host CPU use, in percent of one processor.
    pub host_cpu_percent: Option<f64>,
    /// What a hypervisor below the host took, in percent of one processor.
    pub host_steal_percent: Option<f64>,
    /// Time taken from the guests' processors, in percent of all their time, where guests say. Nothing
    /// under TCG, which tells its guests of none.
    pub guest_steal_percent: Option<f64>,
    /// Why its figures are no finding about the workload, if that is so.
    pub overload: Option<Overload>,
    /// The measurement that began least exactly, if one did less exactly than is needed.
    pub loose_start: Option<SetStart>,
    /// Repetitions recorded.
    pub repetitions: usize,
    /// Machines, over all repetitions, that failed or could not start.
    pub failed: usize,
    /// Machines, over all repetitions, whose clock ran wrong, or that were cut short: not used.
    pub unusable: usize,
    /// Operations that failed.
    pub errors: u64,
    /// The series of the first whole repetition, with the machines' names in the plan's order.
    pub series: Option<IntervalShares>,
    /// Mean of Jain's index over the intervals, repetition by repetition.
    pub interval_fairness: Option<Estimate>,
    /// The least fair interval of all repetitions.
    pub worst_interval: Option<f64>,
}

/// One machine's part in a set.
#[derive(Debug, Clone, PartialEq)]
pub struct VmShare {
    /// Its name.
    pub vm: String,
    /// Every run's sample, of all repetitions.
    pub samples: Vec<f64>,
    /// Mean of the repetitions' means; runs of one repetition share their guest's boot, so that they are no
    /// samples of their own.
    pub mean: Estimate,
    /// Standard deviation of the runs' samples ([Multi-VM 2010], Figures 6 and 8).
    pub stddev: Option<f64>,
}

/// A figure of one set.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// Index of the set.
    pub set: usize,
    /// Machine by machine.
    pub vms: Vec<VmShare>,
    /// Mean over the machines, with the interval of repetitions.
    pub mean: Estimate,
    /// Standard deviation of the machines' means ([Multi-VM 2010], Table 1).
    pub stddev: Option<f64>,
    /// Sum over the machines; only where more is better.
    pub accumulated: Option<Estimate>,
    /// The sum against what one VM alone does; only where more is better.
    pub against_one: Option<Ratio>,
    /// Jain's index of the machines' means.
    pub jain: Option<Estimate>,
    /// The worst machine's mean to the best one's.
    pub worst_to_best: Option<Estimate>,
}

impl Shared {
    /// Standard deviation between machines, in percent of their mean.
    #[must_use]
    pub fn stddev_percent(&self) -> Option<f64> {
        self.stddev.filter(|_| self.mean.mean > 0.0).map(|stddev| 100.0 * stddev / self.mean.mean)
    }
}

/// A figure over all sets.
#[derive(Debug, Clone, PartialEq)]
pub struct NeighbourMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it should go.
    pub better: Better,
    /// Set by set, those without a sample left out.
    pub sets: Vec<Shared>,
}

/// Everything that follows from a run of neighbours.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NeighbourAnalysis {
    /// The sets, by number of machines.
    pub sets: Vec<NeighbourSet>,
    /// The figures, the one that stands for the whole first.
    pub metrics: Vec<NeighbourMetric>,
}

/// A figure of one outcome with a sample for each run.
struct MetricSamples<'a> {
    name: &'a str,
    unit: &'a str,
    better: Better,
    samples: Vec<f64>,
}

fn figures(measured: &MemberMeasured) -> Vec<MetricSamples<'_>> {
    match &measured.outcome {
        JobOutcome::Workload(workload) => workload
            .metrics
            .iter()
            .filter(|metric| metric.better != Better::Neither)
            .map(|metric| MetricSamples {
                name: &metric.name,
                unit: &metric.unit,
                better: metric.better,
                samples: metric.samples.clone(),
            })
            .collect(),
        JobOutcome::Load(load) => {
            let one =
                |name, unit, better, sample| MetricSamples { name, unit, better, samples: vec![sample] };
            let mut all = vec![
                one("throughput", "B/s", Better::Higher, load.total.bytes_per_second),
                one("rate", "operations/s", Better::Higher, load.total.iops),
            ];
            let latency = load.total.latency_ns;
            all.extend(latency.map(|latency| one("response time", "ns", Better::Lower, latency.mean)));
            all.extend(
                latency.map(|latency| one("response time, p99", "ns", Better::Lower, latency.p99 as f64)),
            );
            all
        }
    }
}

/// What the records of a run of neighbours come to.
#[must_use]
pub fn analyse_neighbours(provenance: &Provenance, records: &[SetRecord]) -> NeighbourAnalysis {
    let Some(plan) = provenance.plan.colocation() else { return NeighbourAnalysis::default() };
    let mut plans: Vec<&SetPlan> = plan.sets.iter().collect();
    plans.sort_by_key(|set| set.members.len());
    let of = |set: &SetPlan| -> Vec<&SetRecord> {
        records.iter().filter(|record| record.set == set.name).collect()
    };
    let sets = plans.iter().map(|set| about(set, plan, provenance, &of(set))).collect();
    let names = metric_names(records);
    let metrics = names
        .into_iter()
        .map(|(name, unit, better)| {
            let seed = provenance.plan.seed();
            let tables: Vec<Table> = plans.iter().map(|set| Table::new(&of(set), &name)).collect();
            let alone = plans
                .iter()
                .zip(&tables)
                .find(|(set, _)| set.members.len() == 1)
                .map(|(_, table)| table.sums())
                .unwrap_or_default();
            let shared = plans.iter().zip(&tables).enumerate();
            let sets = shared
                .filter_map(|(index, (set, table))| table.shared(index, set, better, &alone, seed))
                .collect();
            NeighbourMetric { name, unit, better, sets }
        })
        .collect();
    NeighbourAnalysis { sets, metrics }
}

fn metric_names(records: &[SetRecord]) -> Vec<(String, String, Better)> {
    let mut names: Vec<(String, String, Better)> = Vec::new();
    for member in records.iter().flat_map(|record| &record.members) {
        for figure in member.measured().map(figures).unwrap_or_default() {
            if !names.iter().any(|(name, _, _)| name == figure.name) {
                names.push((figure.name.to_owned(), figure.unit.to_owned(), figure.better));
            }
        }
    }
    names
}

/// Every sample of one figure in one set: by repetition, then by machine.
struct Table {
    rows: BTreeMap<u32, Vec<Option<Vec<f64>>>>,
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

impl Table {
    fn new(records: &[&SetRecord], name: &str) -> Self {
        let samples = |record: &SetRecord| {
            let of_member = |member: &virtbench_record::MemberRecord| {
                let all = figures(member.usable()?);
                let found = all.into_iter().find(|figure| figure.name == name)?;
                (!found.samples.is_empty()).then_some(found.samples)
            };
            record.members.iter().map(of_member).collect()
        };
        Self { rows: records.iter().map(|record| (record.repetition, samples(record))).collect() }
    }

    /// The machines' means of repetitions in which all of them have one.
    fn whole(&self) -> BTreeMap<u32, Vec<f64>> {
        let row = |(repetition, row): (&u32, &Vec<Option<Vec<f64>>>)| {
            let means: Option<Vec<f64>> = row.iter().map(|samples| samples.as_deref().map(mean)).collect();
            Some((*repetition, means?))
        };
        self.rows.iter().filter_map(row).collect()
    }

    fn sums(&self) -> BTreeMap<u32, f64> {
        self.whole().into_iter().map(|(repetition, means)| (repetition, means.iter().sum())).collect()
    }

    fn shared(
        &self,
        index: usize,
        set: &SetPlan,
        better: Better,
        alone: &BTreeMap<u32, f64>,
        seed: u64,
    ) -> Option<Shared> {
        let vms: Vec<VmShare> = set
            .members
            .iter()
            .enumerate()
            .filter_map(|(position, member)| {
                let of_vm: Vec<&Vec<f64>> =
                    self.rows.values().filter_map(|row| row.get(position)?.as_ref()).collect();
                let means: Vec<f64> = of_vm.iter().map(|samples| mean(samples)).collect();
                let samples: Vec<f64> = of_vm.into_iter().flatten().copied().collect();
                let stddev = sample_stddev(&samples);
                Some(VmShare {
                    vm: member.vm.clone(),
                    mean: FigureKind::Positive.estimate(&means, seed)?,
                    samples,
                    stddev,
                })
            })
            .collect();
        let whole = self.whole();
        let estimate = |kind: FigureKind, of: &dyn Fn(&[f64]) -> Option<f64>| {
            let values: Vec<f64> = whole.values().filter_map(|means| of(means)).collect();
            kind.estimate(&values, seed)
        };
        let means: Vec<f64> = vms.iter().map(|vm| vm.mean.mean).collect();
        // Without one repetition in which all were well, the machines that were still have a mean.
        let without_interval = || Estimate { mean: mean(&means), samples: means.len(), interval: None };
        let overall = estimate(FigureKind::Positive, &|means| Some(mean(means)))
            .or_else(|| (!means.is_empty()).then(without_interval))?;
        let more = better == Better::Higher;
        Some(Shared {
            set: index,
            mean: overall,
            stddev: sample_stddev(&means),
            accumulated: estimate(FigureKind::Positive, &|means| more.then(|| means.iter().sum())),
            against_one: if more { paired_ratio(alone, &self.sums(), seed) } else { None },
            jain: estimate(FigureKind::Fairness { members: set.members.len() }, &jain),
            worst_to_best: estimate(FigureKind::Share, &worst_to_best),
            vms,
        })
    }
}

fn about(
    set: &SetPlan,
    plan: &ColocationPlan,
    provenance: &Provenance,
    records: &[&SetRecord],
) -> NeighbourSet {
    let seed = provenance.plan.seed();
    let vms = set.members.len();
    let average = |values: Vec<f64>| (!values.is_empty()).then(|| mean(&values));
    let hosts = || records.iter().filter_map(|record| record.host.as_ref());
    let host_cpu_percent = average(hosts().map(|host| host.cpu_percent).collect());
    let members = || records.iter().flat_map(|record| &record.members);
    let steal = members().filter_map(|member| {
        let outcome = &member.usable()?.outcome;
        let all_ns = outcome.elapsed_ns() as f64 * f64::from(plan.vcpus);
        (all_ns > 0.0)
            .then(|| 100.0 * outcome.steal_ns().unwrap_or(0) as f64 / all_ns)
            .filter(|_| outcome.steal_ns().is_some())
    });
    let series: Vec<IntervalShares> = records.iter().filter_map(|record| side_by_side(record)).collect();
    let means: Vec<f64> = series.iter().filter_map(|one| Some(one.mean_and_worst()?.0)).collect();
    let processors = provenance.host.processors;
    NeighbourSet {
        name: set.name.clone(),
        vms,
        region: if plan.homes.is_empty() {
            Region::new(vms as u64 * u64::from(plan.vcpus), processors)
        } else {
            Region::Elsewhere
        },
        loose_start: loose_start(records),
        host_cpu_percent,
        host_steal_percent: average(hosts().map(|host| host.steal_percent).collect()),
        guest_steal_percent: average(steal.collect())
            .filter(|_| plan.homes.is_empty() && !is_emulated(provenance)),
        overload: overload(provenance, records),
        repetitions: records.len(),
        failed: members().filter(|member| member.measured().is_none()).count(),
        unusable: members().filter(|member| member.measured().is_some() && member.usable().is_none()).count(),
        errors: members().filter_map(|member| Some(member.measured()?.outcome.errors())).sum(),
        interval_fairness: FigureKind::Fairness { members: vms }.estimate(&means, seed),
        worst_interval: series.iter().filter_map(|one| Some(one.mean_and_worst()?.1)).reduce(f64::min),
        series: series.into_iter().next(),
    }
}

/// The series of a repetition in which every machine can be used, of two machines at least.
fn side_by_side(record: &SetRecord) -> Option<IntervalShares> {
    let series: Option<Vec<_>> =
        record.members.iter().map(|member| Some(member.usable()?.outcome.intervals())).collect();
    lay_side_by_side(&series.filter(|series| series.len() > 1)?)
}

#[cfg(test)]
#[path = "neighbours_tests.rs"]
mod tests;
