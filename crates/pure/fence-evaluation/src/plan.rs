//! From targets to a configuration: candidates, what each does in simulation, and which none beats.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_fence::catalogue;
use virtbench_fence::predict::Predictors;
use virtbench_model::Estimate;

use crate::case::{VmResult, measure};
use crate::case_error::CaseError;
use crate::pace::{Bench, pace, size_cache};
use crate::settings::Settings;
use crate::system::{MOST_PLANNED, Sharing, SlotCounts, Store, System};
use virtbench_fence_sim::WorldError;
use virtbench_fence_sim::client::Personality;

/// The slot lengths that are tried, milliseconds.
const SLOTS_MS: [f64; 5] = [10.0, 15.0, 20.0, 30.0, 40.0];
/// The hit rates that caches are sized for, percent.
const HITS: [f64; 3] = [50.0, 75.0, 90.0];
/// A machine whose load is so many times the least one gets that many slots, up to so many.
const MOST_SLOTS: f64 = 4.0;
/// A load counts as carried when this share of it is reached in company.
const CARRIED: f64 = 0.95;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// What the machines do.
    pub workload: Personality,
    /// Accesses a second of each machine.
    pub loads: Vec<f64>,
    /// The most that any machine's mean response time may deviate, percent.
    pub deviation_percent: f64,
    /// The longest mean response time of any machine in company, milliseconds.
    pub response_ms: f64,
}

/// Targets that make no sense.
#[derive(Debug, Error, PartialEq)]
pub enum PlanError {
    /// None, too many, or not a rate.
    #[error("`loads` names {0} machines: give 1 to {MOST_PLANNED} rates above 0, in accesses a second")]
    Loads(usize),
    /// Not above zero.
    #[error("{0} {1}: give a number above 0")]
    Target(&'static str, f64),
    /// Of a plan that is read.
    #[error("{0}: {1}")]
    Value(&'static str, &'static str),
}

impl Targets {
    /// # Errors
    /// What makes no sense, by the option's name.
    pub fn check(&self) -> Result<(), PlanError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !(1..=MOST_PLANNED).contains(&self.loads.len()) || !self.loads.iter().all(|load| positive(*load)) {
            return Err(PlanError::Loads(self.loads.len()));
        }
        for (name, value) in
            [("`deviation_percent`", self.deviation_percent), ("`response_ms`", self.response_ms)]
        {
            if !positive(value) {
                return Err(PlanError::Target(name, value));
            }
        }
        Ok(())
    }
}

/// Where partitions lie on the hard disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Side by side: the head's ways between them are short.
    Packed,
    /// Each at the beginning of an equal part of the disk: each can grow.
    Spread,
}

impl Layout {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Spread => "spread",
        }
    }
}

/// A candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// How disks are stored and time is shared.
    pub system: System,
    /// Where they lie.
    pub layout: Layout,
}

/// What a candidate does.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The candidate that was simulated.
    pub plan: Plan,
    /// Cache of each virtual disk, bytes.
    pub cache_bytes: u64,
    /// The greatest deviation of a machine's mean response time, percent.
    pub deviation: Estimate,
    /// The longest mean response time of a machine in company, milliseconds.
    pub response_ms: Estimate,
    /// Of the machine with the most, milliseconds: 99 % of its response times are at most this.
    pub p99_ms: Estimate,
    /// The least share of its load that a machine reaches in company.
    pub reached: Estimate,
}

/// All candidates for these loads, in a fixed order.
#[must_use]
pub fn plans(loads: &[f64]) -> Vec<Plan> {
    let counts = [slots_by_load(loads), slots_each(loads.len())];
    let counts = if counts[0] == counts[1] { &counts[1..] } else { &counts[..] };
    let rotations =
        SLOTS_MS.iter().flat_map(|ms| counts.iter().map(|counts| Sharing::Rotation(*ms, *counts)));
    let sharings: Vec<Sharing> = rotations.chain([Sharing::Listed(&catalogue::PACED)]).collect();
    let mut plans = Vec::new();
    for layout in [Layout::Packed, Layout::Spread] {
        for hit_percent in HITS {
            let system = |sharing: &Sharing| System::new(Store::Partitioned { hit_percent }, *sharing);
            plans.extend(sharings.iter().map(|sharing| Plan { system: system(sharing), layout }));
        }
    }
    plans
}

fn slots_each(machines: usize) -> SlotCounts {
    let mut counts = [0; MOST_PLANNED];
    counts.iter_mut().take(machines).for_each(|count| *count = 1);
    counts
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 1 to MOST_SLOTS
fn slots_by_load(loads: &[f64]) -> SlotCounts {
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let mut counts = [0; MOST_PLANNED];
    for (count, load) in counts.iter_mut().zip(loads) {
        *count = (load / least).round().clamp(1.0, MOST_SLOTS) as u8;
    }
    counts
}

impl Plan {
    /// Slots in a rotation; none where there are no slots.
    #[must_use]
    pub fn slots(&self) -> Option<u32> {
        match self.system.sharing {
            Sharing::Rotation(_, counts) => Some(counts.iter().map(|count| u32::from(*count)).sum()),
            _ => None,
        }
    }

    /// Length of a slot in milliseconds.
    #[must_use]
    pub fn slot_ms(&self) -> Option<f64> {
        match self.system.sharing {
            Sharing::Rotation(ms, _) => Some(ms),
            _ => None,
        }
    }

    /// Its settings: the layout is one of them.
    #[must_use]
    pub fn settings(&self, settings: &Settings, machines: usize) -> Settings {
        let stride = settings.hdd.capacity_bytes / machines.max(1) as u64;
        let stride_bytes = (self.layout == Layout::Spread).then_some(stride);
        Settings { stride_bytes, ..*settings }
    }

    /// Runs it: sizes its caches, paces the machines to their loads, and measures them alone and in company.
    ///
    /// # Errors
    /// The world cannot be, broke, or did nothing.
    pub fn try_out(
        &self,
        targets: &Targets,
        settings: &Settings,
        predictors: &Predictors,
    ) -> Result<Trial, CaseError> {
        let settings = self.settings(settings, targets.loads.len());
        let world = |error: WorldError| CaseError::World { case: self.system.name(), error };
        let all: f64 = targets.loads.iter().sum();
        let span = settings.span(all);
        let mut bench =
            Bench { system: &self.system, settings: &settings, predictors, cache_blocks: 0, span };
        size_cache(&mut bench, targets.workload, targets.loads.len()).map_err(world)?;
        let paced = pace(&bench, targets.workload, &targets.loads, 1.0).map_err(world)?;
        let (vms, _) = measure(&bench, &paced).map_err(world)?;
        let vms = vms.ok_or_else(|| CaseError::Nothing(self.system.name()))?;
        let nothing = || CaseError::Nothing(self.system.name());
        let most =
            |of: &dyn Fn(&VmResult) -> Estimate| vms.iter().map(of).max_by(|a, b| a.mean.total_cmp(&b.mean));
        let reached =
            vms.iter().zip(&targets.loads).map(|(vm, load)| scaled(vm.figures.throughput[1], 1.0 / load));
        Ok(Trial {
            plan: *self,
            cache_bytes: u64::from(bench.cache_blocks) * 4096,
            deviation: most(&|vm| vm.figures.response_deviation.estimate).ok_or_else(nothing)?,
            response_ms: most(&|vm| vm.figures.response_ms[1]).ok_or_else(nothing)?,
            p99_ms: most(&|vm| vm.figures.p99_ms[1]).ok_or_else(nothing)?,
            reached: reached.min_by(|a, b| a.mean.total_cmp(&b.mean)).ok_or_else(nothing)?,
        })
    }
}

fn scaled(mut estimate: Estimate, factor: f64) -> Estimate {
    estimate.mean *= factor;
    if let Some((span, _)) = &mut estimate.interval {
        (span.low, span.high) = (span.low * factor, span.high * factor);
    }
    estimate
}

impl Trial {
    /// How far from the targets: the greatest of deviation, response time and load, each as a multiple of its target at
    /// the unfavourable end of its interval. At most 1 meets them all.
    #[must_use]
    pub fn shortfall(&self, targets: &Targets) -> f64 {
        let high = |estimate: &Estimate| estimate.span().map_or(estimate.mean, |span| span.high);
        let deviation = high(&self.deviation) / targets.deviation_percent;
        let response = high(&self.response_ms) / targets.response_ms;
        let load = if self.reached.mean < CARRIED { CARRIED / self.reached.mean.max(1e-9) } else { 0.0 };
        deviation.max(response).max(load)
    }

    /// Whether it meets the targets.
    #[must_use]
    pub fn meets(&self, targets: &Targets) -> bool {
        self.shortfall(targets) <= 1.0
    }

    /// Whether it is at least as good as another in deviation and response time, and better in one.
    fn beats(&self, other: &Self) -> bool {
        let (a, b) =
            ((self.deviation.mean, self.response_ms.mean), (other.deviation.mean, other.response_ms.mean));
        a.0 <= b.0 && a.1 <= b.1 && a != b
    }
}

/// The places of those that carry their load and that none of these of the same scheduler beats in both deviation and
/// response time, by deviation.
#[must_use]
pub fn front(trials: &[Trial]) -> Vec<usize> {
    let carries = |trial: &Trial| trial.reached.mean >= CARRIED;
    let alike = |a: &Trial, b: &Trial| a.plan.slots().is_some() == b.plan.slots().is_some();
    let beaten = |trial: &Trial| {
        trials.iter().any(|other| alike(other, trial) && carries(other) && other.beats(trial))
    };
    let mut places: Vec<usize> =
        (0..trials.len()).filter(|place| carries(&trials[*place]) && !beaten(&trials[*place])).collect();
    places.sort_by(|a, b| trials[*a].deviation.mean.total_cmp(&trials[*b].deviation.mean));
    places
}

/// The places of those that a closer look is worth: the front, and what comes nearest to the targets, `keep` in all.
#[must_use]
pub fn survivors(trials: &[Trial], targets: &Targets, keep: usize) -> Vec<usize> {
    let mut nearest: Vec<usize> = (0..trials.len()).collect();
    nearest.sort_by(|a, b| trials[*a].shortfall(targets).total_cmp(&trials[*b].shortfall(targets)));
    let mut places = front(trials);
    for place in nearest {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.truncate(keep.max(1));
    places.sort_unstable();
    places
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
