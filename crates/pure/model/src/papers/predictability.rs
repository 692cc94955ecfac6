//! Conclusions on how far VMs disturb each other's I/O, and what a fence does about it: [VirtualFence 2013].

use virtbench_record::{ClaimFinding, ClaimVerdict, Plan};

use super::claim::{Claim, PaperRun, each_run, platform};
use crate::together::{DisturbedVm, Overload, analyse_deviation};

pub(super) const VIRTUAL_FENCE: &str = "[VirtualFence 2013]";

pub(super) const DEVIATION: &str = "study deviation";

/// The goal for the lightest VM, in percent.
const FENCED_PERCENT: f64 = 15.0;

/// The bound for every VM, in percent.
const EVERY_FENCED_PERCENT: f64 = 19.0;

/// What an order of magnitude is.
const ORDER: f64 = 10.0;

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "deviation-is-endemic",
        paper: VIRTUAL_FENCE,
        place: "section 5, Figure 1",
        words: "Beside others every VM's response time deviates much from alone.",
        published: "166 to 479 % under Xen; at least 443 % for the file server's light VM",
        rule: "without a fence every VM's mean deviation of response time is above 15 %",
        differs: "Few VMs, each far from what the disk can do, hardly meet.",
        study: DEVIATION,
        judge: deviation_is_endemic,
    },
    Claim {
        id: "response-deviates-more",
        paper: VIRTUAL_FENCE,
        place: "section 5, Figure 1",
        words: "Response time deviates by more than throughput.",
        published: "327 to 433 % and 17 to 32 % (Xen, hard disk)",
        rule: "without a fence that is so of every VM",
        differs: "Loads without think time lose as much throughput as they wait longer.",
        study: DEVIATION,
        judge: response_deviates_more,
    },
    Claim {
        id: "fence-by-an-order",
        paper: VIRTUAL_FENCE,
        place: "section 7.1, Figure 4",
        words: "The fence takes the lightest VM's interference down by an order of magnitude.",
        published: "from at least 443 % to at most 15 %",
        rule: "without the fence the lightest VM's deviation of response time is at least ten times that with slots of 20 ms",
        differs: "The paper's guests waited for a real disk. Where the host has fewer processors than VMs, guests also wait for those, which no fence \
                  of the disk can mend.",
        study: DEVIATION,
        judge: fence_by_an_order,
    },
    Claim {
        id: "fenced-light-vm",
        paper: VIRTUAL_FENCE,
        place: "section 7.1, Figure 4",
        words: "Behind the fence the lightest VM deviates by at most 15 %.",
        published: "at most 15 %",
        rule: "its mean deviation of response time with slots of 20 ms is at most 15 %",
        differs: "Where the host has fewer processors than VMs, guests also wait for those, which no fence of the disk can mend.",
        study: DEVIATION,
        judge: |runs| {
            fenced(runs, |vms| {
                let light = lightest(vms)?;
                Some((format!("{} {:.1} %", light.0, light.1), light.1 <= FENCED_PERCENT))
            })
        },
    },
    Claim {
        id: "fenced-every-vm",
        paper: VIRTUAL_FENCE,
        place: "section 7.1",
        words: "Behind the fence every VM deviates by less than 19 %.",
        published: "always lower than 19 % at half of the reads from the cache",
        rule: "every VM's mean deviation of response time with slots of 20 ms is below 19 %",
        differs: "Where the host has fewer processors than VMs, guests also wait for those. A VM whose load does not fit into its slots queues.",
        study: DEVIATION,
        judge: |runs| {
            fenced(runs, |vms| {
                let told: Vec<String> =
                    vms.iter().map(|(vm, _, percent)| format!("{vm} {percent:.1} %")).collect();
                let holds = vms.iter().all(|(.., percent)| *percent < EVERY_FENCED_PERCENT);
                (!told.is_empty()).then(|| (told.join(", "), holds))
            })
        },
    },
    Claim {
        id: "longer-slots",
        paper: VIRTUAL_FENCE,
        place: "section 7.3.2",
        words: "Longer slots lower the deviation.",
        published: "drawn, 10 to 50 ms",
        rule: "the mean over all VMs of the deviation of response time is lower with slots of 30 ms than with 20",
        differs: "Three repetitions leave wide intervals.",
        study: DEVIATION,
        judge: longer_slots,
    },
];

/// A VM's name, its share in percent, and how far its response time deviates, in percent.
type Deviating = (String, f64, f64);

/// How a run shares the disk, where it is one of the two that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Everything goes to the disk at once.
    Unfenced,
    /// By the fence, with slots of so many milliseconds.
    Fenced(u64),
}

/// Slots that are not said are of this many milliseconds.
pub(super) const USUAL_SLOT_MS: u64 = 20;

pub(super) fn sharing(run: &PaperRun<'_>) -> Option<Sharing> {
    let Plan::Deviation(plan) = &run.provenance.plan else { return None };
    let (_, backing) = plan.disk.split_once("@fence")?;
    let setting = |name: &str| {
        backing
            .split(',')
            .filter_map(|one| one.split_once('='))
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    };
    match setting("scheduler") {
        Some("pass-through") if setting("throttle").is_none() && setting("attach").is_none() => {
            Some(Sharing::Unfenced)
        }
        // What a fence is where nothing is said.
        None => {
            let slot =
                setting("slot").map_or(Ok(USUAL_SLOT_MS * 1_000_000), virtbench_units::parse_duration_ns);
            Some(Sharing::Fenced(slot.ok()? / 1_000_000))
        }
        _ => None,
    }
}

/// What a run comes to: its VMs beside others, and why they say nothing of the disk, where something else was short.
pub(super) struct Disturbed {
    pub(super) vms: Vec<DisturbedVm>,
    overload: Option<Overload>,
}

impl Disturbed {
    pub(super) fn of(run: &PaperRun<'_>) -> Self {
        let sets = analyse_deviation(run.provenance, run.records.sets()).sets;
        let overload = sets.iter().find_map(|set| set.overload);
        Self { vms: sets.into_iter().flat_map(|set| set.vms).collect(), overload }
    }

    fn deviating(&self) -> Vec<Deviating> {
        let of = |vm: &DisturbedVm| {
            Some((vm.vm.clone(), vm.share_percent.unwrap_or(100.0), vm.response?.delta.mean))
        };
        self.vms.iter().filter_map(of).collect()
    }
}

/// The verdict of a rule; open where a run that it took says nothing.
fn decided((figures, holds): (String, bool), overload: Option<Overload>) -> (String, ClaimVerdict) {
    match overload {
        Some(overload) => (format!("{figures}; {}", overload.words()), ClaimVerdict::Open),
        None => (figures, ClaimVerdict::of(holds)),
    }
}

/// The VM with the least share, with its deviation.
fn lightest(vms: &[Deviating]) -> Option<(&str, f64)> {
    vms.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(vm, _, percent)| (vm.as_str(), *percent))
}

fn told(vms: &[Deviating]) -> String {
    vms.iter().map(|(vm, _, percent)| format!("{vm} {percent:.0} %")).collect::<Vec<_>>().join(", ")
}

/// A rule for each run that shares the disk like this.
fn each(
    runs: &[PaperRun<'_>],
    shared: Sharing,
    rule: impl Fn(&Disturbed) -> Option<(String, bool)>,
) -> Vec<ClaimFinding> {
    each_run(runs, |run| {
        let found = (sharing(run)? == shared).then(|| Disturbed::of(run))?;
        Some(decided(rule(&found)?, found.overload))
    })
}

fn deviation_is_endemic(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    each(runs, Sharing::Unfenced, |found| {
        let vms = found.deviating();
        let holds = vms.iter().all(|(.., percent)| *percent > FENCED_PERCENT);
        (!vms.is_empty()).then(|| (told(&vms), holds))
    })
}

fn response_deviates_more(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    each(runs, Sharing::Unfenced, |found| {
        let of = |vm: &'_ DisturbedVm| Some((vm.response?.delta.mean, vm.throughput?.delta.mean));
        let both: Vec<(&str, (f64, f64))> =
            found.vms.iter().filter_map(|vm| Some((vm.vm.as_str(), of(vm)?))).collect();
        let told: Vec<String> =
            both.iter().map(|(vm, (response, rate))| format!("{vm} {response:.0} and {rate:.1} %")).collect();
        let holds = both.iter().all(|(_, (response, rate))| response > rate);
        (!both.is_empty()).then(|| (told.join(", "), holds))
    })
}

/// A rule for each run behind the fence with the usual slots.
fn fenced(runs: &[PaperRun<'_>], rule: impl Fn(&[Deviating]) -> Option<(String, bool)>) -> Vec<ClaimFinding> {
    each(runs, Sharing::Fenced(USUAL_SLOT_MS), |found| rule(&found.deviating()))
}

/// A rule for each run behind the fence with the usual slots, beside the last of the same platform that shares otherwise.
fn beside(
    runs: &[PaperRun<'_>],
    other: Sharing,
    rule: impl Fn(&[Deviating], &[Deviating]) -> Option<(String, bool)>,
) -> Vec<ClaimFinding> {
    each_run(runs, |run| {
        let found = (sharing(run)? == Sharing::Fenced(USUAL_SLOT_MS)).then(|| Disturbed::of(run))?;
        let name = platform(run.provenance);
        let is_counterpart =
            |one: &&PaperRun<'_>| sharing(one) == Some(other) && platform(one.provenance) == name;
        let counterpart = Disturbed::of(runs.iter().rev().find(is_counterpart)?);
        let judged = rule(&found.deviating(), &counterpart.deviating())?;
        Some(decided(judged, found.overload.or(counterpart.overload)))
    })
}

fn fence_by_an_order(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    beside(runs, Sharing::Unfenced, |fenced, unfenced| {
        let ((vm, with), (_, without)) = (lightest(fenced)?, lightest(unfenced)?);
        Some((format!("{vm} {without:.0} % without, {with:.1} % with"), without >= ORDER * with))
    })
}

fn longer_slots(runs: &[PaperRun<'_>]) -> Vec<ClaimFinding> {
    let mean = |vms: &[Deviating]| {
        (!vms.is_empty()).then(|| vms.iter().map(|(.., percent)| percent).sum::<f64>() / vms.len() as f64)
    };
    beside(runs, Sharing::Fenced(30), |usual, longer| {
        let (usual, longer) = (mean(usual)?, mean(longer)?);
        Some((format!("{usual:.1} % with 20 ms, {longer:.1} % with 30 ms"), longer < usual))
    })
}

#[cfg(test)]
#[path = "predictability_tests.rs"]
mod predictability_tests;
