//! Conclusions on a database in a VM and on management operations: [Platform 2014], sections IV.A and IV.C.

use virtbench_record::{ClaimFinding, ClaimVerdict, OperationKind, Plan, Quantity};

use super::claim::{Claim, Judged, PLATFORM, PaperRun, each_run, manager};
use crate::application::ApplicationAnalysis;
use crate::oltp::analyse_oltp;
use crate::operations::analyse_operations;

/// What a database keeps in the paper is 0.79 of native's transactions; rounded there to 0.8.
const KEPT: f64 = 0.79;

/// The greatest difference of users' instructions that still counts as none, as a factor.
const SAME_PATH: f64 = 1.1;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "database-keeps-four-fifths",
        paper: PLATFORM,
        place: "section IV.A, Table 4",
        words: "A database in a VM does at least about four fifths of native's transactions when its processors are saturated.",
        published: "0.79 of native",
        rule: "the ratio of transactions at saturation, or its 95 % interval, reaches 0.79",
        differs: "The paper's processors execute a guest's kernel and translate its addresses themselves.",
        study: "study oltp",
        judge: |runs| databases(runs, database_keeps),
    },
    Claim {
        id: "slower-instructions",
        paper: PLATFORM,
        place: "section IV.A, Table 5",
        words: "Most of what a transaction costs more in a VM is slower instructions, and not more of them.",
        published: "13 % more cycles an instruction, 8 % more instructions",
        rule: "cycles an instruction grow by a greater factor than instructions a transaction",
        differs: "It takes counters of the processor, in the guest and on the host.",
        study: "study oltp",
        judge: |runs| databases(runs, slower_instructions),
    },
    Claim {
        id: "same-path",
        paper: PLATFORM,
        place: "section IV.A, Table 5",
        words: "A transaction takes about as many instructions in a VM as natively.",
        published: "1.08 times as many",
        rule: "it takes at most 1.1 times as many",
        differs: "It takes counters of the processor, in the guest and on the host.",
        study: "study oltp",
        judge: |runs| databases(runs, same_path),
    },
    Claim {
        id: "operations-slow-with-density",
        paper: PLATFORM,
        place: "section IV.C, Table 6",
        words: "Management operations take longer with more VMs on a host, removal excepted.",
        published: "5.6 to 15 times for 12.5 times the VMs; removal 0.7 times",
        rule: "every operation but removal takes longer at the most VMs than at the fewest",
        differs: "The paper's manager places VMs and copies disks over a shared network; a hypervisor of one host does neither.",
        study: "study operations",
        judge: operations_slow,
    },
    Claim {
        id: "starting-is-slowest",
        paper: PLATFORM,
        place: "section IV.C, Table 6",
        words: "Starting a VM is the slowest operation.",
        published: "0.94 of 0.053 to 0.94 s, for each of 32 hosts",
        rule: "at the most VMs no other operation has a longer mean",
        differs: "Whether a guest has answered is part of what virtbench measures. Where clones copy a whole disk, they take longest.",
        study: "study operations",
        judge: starting_is_slowest,
    },
];

/// A rule for each run of a database natively and in a VM.
fn databases(runs: &[PaperRun<'_>], rule: fn(&ApplicationAnalysis) -> Judged) -> Vec<ClaimFinding> {
    each_run(runs, |run| {
        let Plan::Oltp(plan) = &run.provenance.plan else { return None };
        let found = analyse_oltp(plan, run.records.oltp());
        let (figures, verdict) = rule(&found.saturated)?;
        if found.sides.iter().any(|side| side.driver_is_limit) {
            return Some((format!("{figures}; the users' own program was the limit"), ClaimVerdict::Open));
        }
        Some((figures, verdict))
    })
}

fn database_keeps(found: &ApplicationAnalysis) -> Judged {
    let against = found.ratios.first()?;
    let kept = against.ratios.get(&Quantity::TransactionsPerSecond)?;
    let reaches = kept.interval.map_or(kept.value, |span| span.high.max(kept.value));
    let rates: Vec<String> = [0, against.side]
        .iter()
        .filter_map(|side| {
            let side = &found.sides[*side];
            Some(format!(
                "{:.0} transactions/s in {}",
                side.known.get(&Quantity::TransactionsPerSecond)?.mean,
                side.name
            ))
        })
        .collect();
    let figures = format!("{:.2} of native ({})", kept.value, rates.join(", "));
    Some((figures, ClaimVerdict::of(reaches >= KEPT)))
}

const NOT_COUNTED: &str = "no counters of the processor";

fn slower_instructions(found: &ApplicationAnalysis) -> Judged {
    let against = found.ratios.first()?;
    let Some(growth) = against.growth else { return Some((NOT_COUNTED.into(), ClaimVerdict::Open)) };
    let [each, path] = [growth.cycles_per_instruction, growth.instructions];
    let figures = format!("{each:.2} times the cycles an instruction, {path:.2} times the instructions");
    Some((figures, ClaimVerdict::of(each > path)))
}

fn same_path(found: &ApplicationAnalysis) -> Judged {
    let against = found.ratios.first()?;
    let Some(growth) = against.growth else { return Some((NOT_COUNTED.into(), ClaimVerdict::Open)) };
    let path = growth.instructions;
    Some((format!("{path:.2} times the instructions"), ClaimVerdict::of(path <= SAME_PATH)))
}

fn operations_slow(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    let of = |run: &PaperRun<'_>| {
        let Plan::Operations(plan) = &run.provenance.plan else { return None };
        let growth = analyse_operations(plan, run.records.operations()).growth;
        let factors = growth.iter().filter(|(kind, _)| **kind != OperationKind::Remove);
        let factors: Vec<(&str, f64)> = factors.map(|(kind, growth)| (kind.name(), growth.factor)).collect();
        let (least, most) = (plan.vms.iter().min()?, plan.vms.iter().max()?);
        let slowed = factors.iter().filter(|(_, factor)| *factor > 1.0).count();
        let spread = factors.iter().map(|(name, factor)| format!("{name} {factor:.2}")).collect::<Vec<_>>();
        (!factors.is_empty()).then(|| ClaimFinding {
            platform: manager(plan),
            figures: format!("from {least} to {most} VMs, times: {}", spread.join(", ")),
            verdict: ClaimVerdict::of(slowed == factors.len()),
        })
    };
    runs.iter().filter_map(of).collect()
}

fn starting_is_slowest(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    let of = |run: &PaperRun<'_>| {
        let Plan::Operations(plan) = &run.provenance.plan else { return None };
        let found = analyse_operations(plan, run.records.operations());
        let kinds = &found.steps.iter().max_by_key(|step| step.vms)?.kinds;
        let mut means: Vec<(OperationKind, f64)> = kinds
            .iter()
            .filter_map(|(kind, one)| Some((*kind, one.mean_and_p95_ns[0]?.mean / 1e9)))
            .collect();
        means.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let (slowest, _) = means.first()?;
        let told = means.iter().take(3).map(|(kind, mean)| format!("{} {mean:.3} s", kind.name()));
        let is_there = means.len() > 1 && kinds.contains_key(&OperationKind::PowerOn);
        Some(ClaimFinding {
            platform: manager(plan),
            figures: format!("slowest {}", told.collect::<Vec<_>>().join(", ")),
            verdict: if is_there {
                ClaimVerdict::of(*slowest == OperationKind::PowerOn)
            } else {
                ClaimVerdict::Open
            },
        })
    };
    runs.iter().filter_map(of).collect()
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod servers_tests;
