//! Two runs, compared: what changed, what else differs between them, and what could not be judged. "Nothing got worse" must not
//! be said of what was not observed.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::{Better, DiskFacts, GuestFacts, HostFacts, PointKey, Provenance};

use super::change::Change;
use crate::host_load::Busier;
use crate::quantity::{Direction, Quantity};

/// A point in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedPoint {
    /// Which point.
    pub point: PointKey,
    /// Repetitions before and after.
    pub repetitions: [usize; 2],
    /// Each quantity that both runs have.
    pub changes: Vec<Change>,
}

/// An environment in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedEnvironment {
    /// Its name.
    pub name: String,
    /// Each quantity over all points.
    pub overall: Vec<Change>,
    /// Point by point.
    pub points: Vec<ChangedPoint>,
    /// What else its host was busier with on one side, if that forbids a verdict. That a side stopped is said all the same.
    pub busier: Option<Busier>,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// What else differs between the runs.
    pub differences: Vec<String>,
    /// Whether they were measured in turn, so that what changes slowly on a host is in both alike.
    pub alternated: bool,
    /// Runs before and after.
    pub runs: [usize; 2],
    /// Comparable runs of the past by which it is known how much runs differ; none where it is unknown.
    pub runs_of_the_past: Option<usize>,
    /// Whether both sides are one run, or copies of it.
    pub same_run: bool,
    /// Each environment that both have.
    pub environments: Vec<ChangedEnvironment>,
    /// Environments of one run only.
    pub unmatched_environments: Vec<String>,
    /// Points of one run only, each in one environment of both.
    pub unmatched_points: usize,
    /// What could not be judged, each in words.
    pub undecided: Vec<String>,
}

impl BeforeAfter {
    /// Whether anything became worse, allowing for how much was looked at.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.environments.iter().any(|environment| {
            let points = environment.points.iter().flat_map(|point| &point.changes);
            environment.overall.iter().chain(points).any(|change| change.regression)
        })
    }

    /// Whether anything was judged at all: a quantity of an environment, by more than single values, on hosts that were as busy.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        !self.same_run
            && self.environments.iter().any(|environment| {
                let judged = |change: &Change| {
                    change.is_judged() && (environment.busier.is_none() || change.is_stopped())
                };
                environment.overall.iter().any(judged)
            })
    }

    /// Whether an environment's host was busier on one side, so that the figures tell of that too.
    #[must_use]
    pub fn is_not_comparable(&self) -> bool {
        self.environments.iter().any(|environment| environment.busier.is_some())
    }

    /// How many points came out how in a quantity, over all environments.
    #[must_use]
    pub fn tally(&self, quantity: Quantity) -> BTreeMap<Direction, usize> {
        let mut tally = BTreeMap::new();
        let points = self.environments.iter().flat_map(|environment| &environment.points);
        for change in points.flat_map(|point| &point.changes).filter(|change| change.quantity == quantity) {
            *tally.entry(change.verdict).or_default() += 1;
        }
        tally
    }
}

/// Each difference of version, plan, host or guest, in words.
pub(crate) fn differences(before: &Provenance, after: &Provenance) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, before: &str, after: &str| {
        if before != after {
            found.push(format!("{what}: {before} before, {after} after"));
        }
    };
    note("virtbench", &before.version, &after.version);
    host(&before.host, &after.host, "", &mut note);
    for machine in &before.machines {
        let name = &machine.environment;
        if let Some(other) = after.machines.iter().find(|other| other.environment == *name) {
            host(&machine.facts, &other.facts, &format!("{name}: "), &mut note);
        }
    }
    if let (Some(before), Some(after)) = (&before.guest, &after.guest) {
        guest(before, after, &mut note);
    }
    if let Some(part) = before.plan.first_difference(&after.plan) {
        found.push(format!("{part} of the two plans"));
    }
    found
}

fn host(before: &HostFacts, after: &HostFacts, whose: &str, note: &mut impl FnMut(&str, &str, &str)) {
    let below = |host: &HostFacts| host.hypervisor.clone().unwrap_or_else(|| "none".into());
    note(&format!("{whose}processor"), &before.cpu, &after.cpu);
    note(&format!("{whose}processors"), &before.processors.to_string(), &after.processors.to_string());
    note(
        &format!("{whose}memory in bytes"),
        &before.memory_bytes.to_string(),
        &after.memory_bytes.to_string(),
    );
    note(&format!("{whose}kernel"), &before.kernel, &after.kernel);
    note(&format!("{whose}distribution"), &before.distribution, &after.distribution);
    note(&format!("{whose}hypervisor below it"), &below(before), &below(after));
    note(&format!("{whose}storage"), &storage(&before.disk), &storage(&after.disk));
}

fn storage(disk: &DiskFacts) -> String {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
    format!("{} on {}, scheduler {}", disk.filesystem, known(&disk.device), known(&disk.scheduler))
}

fn guest(before: &GuestFacts, after: &GuestFacts, note: &mut impl FnMut(&str, &str, &str)) {
    note("accelerator", &before.accelerator.name, &after.accelerator.name);
    note("QEMU", &before.qemu, &after.qemu);
    note("the guest's kernel", &before.kernel, &after.kernel);
    note("the guest's processors", &before.vcpus.to_string(), &after.vcpus.to_string());
    note("the guest's memory in bytes", &before.memory_bytes.to_string(), &after.memory_bytes.to_string());
    note("the guest's adapter", &before.adapter, &after.adapter);
}

/// A change to half or double that would not have shown: of less, too little was seen to be called judged.
const BLIND: f64 = 2.0;

/// Each reason in words, that which concerns most first.
pub(super) fn unjudged(compared: &BeforeAfter) -> Vec<String> {
    let mut reasons = Vec::new();
    if compared.same_run {
        reasons.push("both sides are the same run".to_owned());
    }
    if compared.environments.is_empty() {
        reasons.push("the runs have no point in common".to_owned());
        return reasons;
    }
    for environment in &compared.environments {
        reasons.extend(of_environment(environment));
    }
    for name in &compared.unmatched_environments {
        reasons.push(format!("{name} is in one run only"));
    }
    if compared.unmatched_points > 0 {
        reasons.push(format!("{} in one run only", points(compared.unmatched_points, "is", "are")));
    }
    reasons
}

fn of_environment(environment: &ChangedEnvironment) -> Vec<String> {
    let name = &environment.name;
    if let Some(busier) = &environment.busier {
        return vec![format!("{name}: {}", busier.words())];
    }
    let mut reasons = Vec::new();
    let idle =
        environment.points.iter().filter(|point| point.changes.iter().any(|change| change.ratio.is_nan()));
    let idle = idle.count();
    if idle > 0 {
        reasons.push(format!(
            "{name}: at {} both runs completed nothing in some repetition",
            points(idle, "", "")
        ));
    }
    let is_single = |point: &&ChangedPoint| {
        point.changes.is_empty()
            || point.changes.iter().any(|change| !change.is_judged() && change.ratio.is_finite())
    };
    let single = environment.points.iter().filter(is_single).count();
    if single > 0 {
        let what = points(single, "was", "were");
        reasons.push(format!("{name}: {what} measured once on a side, so the spread is unknown"));
    }
    let blind = environment.overall.iter().find_map(|change| {
        let [low, high] = change.interval.filter(|_| change.verdict == Direction::Undecided)?;
        let is_blind = match change.quantity.better() {
            Better::Higher => low < 1.0 / BLIND,
            Better::Lower | Better::Neither => high > BLIND,
        };
        is_blind.then_some(change.quantity)
    });
    if let Some(quantity) = blind {
        reasons.push(format!("{name}: half or double the {} would not have shown", quantity.name()));
    }
    reasons
}

fn points(number: usize, one: &str, many: &str) -> String {
    let (noun, verb) = if number == 1 { ("point", one) } else { ("points", many) };
    format!("{number} {noun} {verb}").trim_end().to_owned()
}
