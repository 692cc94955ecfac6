//! Conclusions on VMs that run one load at once: [Multi-VM 2010].

use virtbench_record::{ClaimFinding, ClaimVerdict, Plan};

use super::claim::{Claim, Judged, PaperRun, each_run, platform};
use crate::together::{NeighbourAnalysis, NeighbourMetric, Region, Shared, analyse_neighbours};

pub(super) const MULTI_VM: &str = "[Multi-VM 2010]";

pub(super) const NEIGHBOURS: &str = "study neighbours";

/// Between VMs that compute, in percent of the mean: the paper's greatest.
const FAIR_COMPUTING_PERCENT: f64 = 1.2;

/// Between VMs that move memory, in percent.
const FAIR_MEMORY_PERCENT: f64 = 5.0;

/// What is left of the greatest sum with the most VMs, at least.
const WELL_MULTIPLEXED: f64 = 0.9;

/// How far a sum may exceed what the processors allow, as a factor: chance.
const NO_MORE: f64 = 1.05;

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "fair-computing",
        paper: MULTI_VM,
        place: "section 3.3, Table 1",
        words: "VMs that compute get equal shares of the processors.",
        published: "standard deviation between VMs of 0.7 to 1.2 % of the mean, 4 to 7 VMs on 8 processors",
        rule: "at every number of VMs the standard deviation between them is at most 1.2 % of the mean",
        differs: "On a machine that is virtual itself, its processors are not equally fast.",
        study: NEIGHBOURS,
        judge: |runs| each(runs, CPU, fair_computing),
    },
    Claim {
        id: "computing-fills-the-machine",
        paper: MULTI_VM,
        place: "section 3.2, Table 1",
        words: "The sum of what VMs compute grows until the processors are in use, and hardly falls beyond.",
        published: "14.8 with 1 VM, 56.2 with 4 (all processors), 58.9 with 5, 56.7 with 7",
        rule: "the sum never exceeds one VM's times as many as processors hold, by more than 5 %, and at the most VMs is at least 0.9 of the greatest",
        differs: "Threads of one processor's core share it, so that the last processors add less.",
        study: NEIGHBOURS,
        judge: computing_fills_the_machine,
    },
    Claim {
        id: "fair-memory",
        paper: MULTI_VM,
        place: "section 4.3, Figure 3",
        words: "Memory bandwidth is shared fairly.",
        published: "standard deviation below 5 % for all but one test up to four VMs",
        rule: "while VMs have no more processors than the host, the standard deviation between them is at most 5 % of the mean",
        differs: "Other tenants of the same hardware use its memory too.",
        study: NEIGHBOURS,
        judge: |runs| each(runs, MEMORY, fair_memory),
    },
    Claim {
        id: "memory-near-its-most",
        paper: MULTI_VM,
        place: "section 4.3, Figure 4",
        words: "With more VMs than processors, the sum of memory throughput stays close to its maximum.",
        published: "greatest with three of seven VMs, slightly less beyond",
        rule: "at the most VMs the sum is at least 0.9 of the greatest",
        differs: "Emulated code is bound by the processor and not by memory.",
        study: NEIGHBOURS,
        judge: |runs| each(runs, MEMORY, near_its_most),
    },
    Claim {
        id: "more-files-together",
        paper: MULTI_VM,
        place: "section 5.3, Figure 9",
        words: "Several VMs together move more to and from files than one alone.",
        published: "drawn; reads by far, writes slightly",
        rule: "with the most VMs the sum of each throughput is above one VM's",
        differs: "Where one VM uses up the disk or a processor, others can only share it.",
        study: NEIGHBOURS,
        judge: |runs| each(runs, FILES, more_files_together),
    },
    Claim {
        id: "files-are-least-fair",
        paper: MULTI_VM,
        place: "sections 5.3 and 6, Figures 6 and 8",
        words: "Files are shared less fairly than processors and memory.",
        published: "deviation from run to run of almost always over 10 %; 1.2 % and 5 % of the other two",
        rule: "with the most VMs the median deviation of a VM's throughput of files from run to run is greater than those of computing and of memory",
        differs: "A disk without heads serves several VMs evenly.",
        study: NEIGHBOURS,
        judge: files_are_least_fair,
    },
];

/// How workloads that compute begin.
pub(super) const CPU: &[&str] = &["cpu"];

/// Those that move memory.
const MEMORY: &[&str] = &["memory"];

/// Those on files.
const FILES: &[&str] = &["bonnie", "iozone", "files"];

/// The analysis of a run whose VMs all do one of these workloads.
pub(super) fn analysed(run: &PaperRun<'_>, workloads: &[&str]) -> Option<NeighbourAnalysis> {
    let Plan::Neighbours(plan) = &run.provenance.plan else { return None };
    let is_one = |workload: &String| {
        let kind = workload.split([':', ',', ' ']).next().unwrap_or_default();
        workloads.contains(&kind)
    };
    plan.workloads.iter().all(is_one).then(|| analyse_neighbours(run.provenance, run.records.sets()))
}

fn each(
    runs: &[PaperRun<'_>],
    workloads: &[&str],
    rule: fn(&NeighbourAnalysis) -> Judged,
) -> Vec<ClaimFinding> {
    each_run(runs, |run| rule(&analysed(run, workloads)?))
}

/// A figure's sets that say something of sharing: those in which nothing but the workload was short.
fn telling<'f>(
    found: &'f NeighbourAnalysis,
    metric: &'f NeighbourMetric,
) -> impl DoubleEndedIterator<Item = &'f Shared> {
    metric.sets.iter().filter(|shared| found.sets[shared.set].overload.is_none())
}

/// What is said where several VMs ran, and no set of them says anything of sharing. Nothing where none ran.
fn untold(found: &NeighbourAnalysis) -> Judged {
    let overload = found.sets.iter().filter(|set| set.vms > 1).find_map(|set| set.overload)?;
    Some((overload.words().to_owned(), ClaimVerdict::Open))
}

/// Whether VMs deviate by no more than this from each other, at each number of several, in percent.
fn share_evenly(found: &NeighbourAnalysis, counts: impl Fn(Region) -> bool, most_percent: f64) -> Judged {
    let metric = found.metrics.first()?;
    let several: Vec<(usize, f64)> = telling(found, metric)
        .filter(|shared| found.sets[shared.set].vms > 1 && counts(found.sets[shared.set].region))
        .filter_map(|shared| Some((found.sets[shared.set].vms, shared.stddev_percent()?)))
        .collect();
    let Some(greatest) = several.iter().map(|(_, percent)| *percent).reduce(f64::max) else {
        return untold(found);
    };
    let told: Vec<String> =
        several.iter().map(|(vms, percent)| format!("{percent:.1} % with {vms}")).collect();
    let figures = format!("{}, standard deviation {}", metric.name, told.join(", "));
    Some((figures, ClaimVerdict::of(greatest <= most_percent)))
}

fn fair_computing(found: &NeighbourAnalysis) -> Judged {
    share_evenly(found, |_| true, FAIR_COMPUTING_PERCENT)
}

fn fair_memory(found: &NeighbourAnalysis) -> Judged {
    share_evenly(found, |region| matches!(region, Region::Fewer | Region::Equal), FAIR_MEMORY_PERCENT)
}

/// The sums of a figure by number of VMs, and that in words.
fn sums(found: &NeighbourAnalysis, metric: &NeighbourMetric) -> (String, Vec<(usize, f64)>) {
    let sums: Vec<(usize, f64)> = telling(found, metric)
        .filter_map(|shared| Some((found.sets[shared.set].vms, shared.accumulated?.mean)))
        .collect();
    let one = sums.first().map_or(1.0, |(_, one)| *one);
    let told: Vec<String> = sums.iter().map(|(vms, sum)| format!("{:.2} with {vms}", sum / one)).collect();
    (format!("sums of {}, first = 1: {}", metric.name, told.join(", ")), sums)
}

fn near_its_most(found: &NeighbourAnalysis) -> Judged {
    let (figures, sums) = sums(found, found.metrics.first()?);
    if sums.len() < 2 {
        return untold(found);
    }
    let most = sums.iter().map(|(_, sum)| *sum).reduce(f64::max)?;
    let (_, last) = sums.last()?;
    Some((figures, ClaimVerdict::of(*last >= WELL_MULTIPLEXED * most)))
}

fn computing_fills_the_machine(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    each_run(runs, |run| {
        let plan = run.provenance.plan.colocation()?;
        let held = f64::from(run.provenance.host.processors) / f64::from(plan.vcpus.max(1));
        fills_the_machine(&analysed(run, CPU)?, held)
    })
}

/// Of a host whose processors hold so many VMs.
fn fills_the_machine(found: &NeighbourAnalysis, held: f64) -> Judged {
    let (figures, sums) = sums(found, found.metrics.first()?);
    if sums.len() < 2 {
        return untold(found);
    }
    let (_, one) = sums.iter().find(|(vms, _)| *vms == 1)?;
    let most = sums.iter().map(|(_, sum)| *sum).reduce(f64::max)?;
    let (vms, last) = sums.last()?;
    let holds = most <= NO_MORE * held * one && *last >= WELL_MULTIPLEXED * most;
    let verdict = if *vms as f64 > held { ClaimVerdict::of(holds) } else { ClaimVerdict::Open };
    Some((format!("{figures}; the processors hold {held:.0}"), verdict))
}

fn more_files_together(found: &NeighbourAnalysis) -> Judged {
    let mut told = Vec::new();
    let mut holds = true;
    for metric in &found.metrics {
        let Some(against) = telling(found, metric).last().and_then(|shared| shared.against_one) else {
            continue;
        };
        holds &= against.value > 1.0;
        told.push(format!("{} {:.2}", metric.name, against.value));
    }
    if told.is_empty() {
        untold(found)
    } else {
        Some((format!("times one VM's: {}", told.join(", ")), ClaimVerdict::of(holds)))
    }
}

/// The median over figures and VMs of how far a VM's samples are apart with the most VMs, in percent of their mean.
fn spread_percent(found: &NeighbourAnalysis) -> Option<f64> {
    let of_vm = |vm: &crate::together::VmShare| {
        vm.stddev.filter(|_| vm.mean.mean > 0.0).map(|stddev| 100.0 * stddev / vm.mean.mean)
    };
    let last = |metric: &NeighbourMetric| -> Vec<f64> {
        let several = |shared: &&Shared| shared.vms.len() > 1;
        telling(found, metric)
            .last()
            .filter(several)
            .map(|shared| shared.vms.iter().filter_map(of_vm).collect())
            .unwrap_or_default()
    };
    crate::interval::median(found.metrics.iter().flat_map(last))
}

fn files_are_least_fair(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    let last = |workloads: &[&str], on: &str| {
        let own = runs.iter().rev().filter(|run| platform(run.provenance) == on);
        own.filter_map(|run| analysed(run, workloads)).next()
    };
    let mut platforms: Vec<String> = Vec::new();
    for run in runs {
        let name = platform(run.provenance);
        if !platforms.contains(&name) {
            platforms.push(name);
        }
    }
    let of = |name: String| {
        let [computing, memory, files] = [CPU, MEMORY, FILES].map(|workloads| last(workloads, &name));
        let all = [computing?, memory?, files?];
        let (figures, verdict) = match all.each_ref().map(spread_percent) {
            [Some(computing), Some(memory), Some(files)] => (
                format!("files {files:.1} %, computing {computing:.1} %, memory {memory:.1} %"),
                ClaimVerdict::of(files > computing && files > memory),
            ),
            _ => all.iter().find_map(untold)?,
        };
        Some(ClaimFinding { platform: name, figures, verdict })
    };
    platforms.into_iter().filter_map(of).collect()
}

#[cfg(test)]
#[path = "many_vms_tests.rs"]
mod many_vms_tests;
