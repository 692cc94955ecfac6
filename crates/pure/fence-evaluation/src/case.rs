//! One system under one workload: alone against in company.

use virtbench_fence::predict::Predictors;
use virtbench_model::{Estimate, FigureKind, OverExperiments, deviation};
use virtbench_units::SeedSequence;

use crate::case_error::CaseError;
use crate::load::{Load, Saturated, Site};
use crate::pace::{Bench, Paced};
use crate::settings::Settings;
use crate::system::System;
use virtbench_fence_sim::VmOutcome;
use virtbench_fence_sim::WorldError;
use virtbench_fence_sim::client::{Client, Personality};

/// A system, a workload, and a load for each virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// How its disks are stored.
    pub system: System,
    /// What the machines do.
    pub workload: Personality,
    /// Each machine's share of saturation, by virtual disk.
    pub shares: Vec<f64>,
    /// Machines, and slots, of the system whose saturation it is a share of: the paper's four.
    pub of: usize,
    /// The system for which the machines are paced, where it is another: both then have the same threads with
    /// the same think times.
    pub load_of: Option<System>,
}

/// What one machine did.
#[derive(Debug, Clone, PartialEq)]
pub struct VmResult {
    /// Its threads, think time and aim.
    pub paced: Paced,
    /// What it did alone and in company.
    pub figures: Compared,
}

/// One machine alone and in company, over experiments.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Accesses a second alone and in company.
    pub throughput: [Estimate; 2],
    /// Mean response time alone and in company, milliseconds.
    pub response_ms: [Estimate; 2],
    /// 99 % of response times alone and in company are at most this, milliseconds.
    pub p99_ms: [Estimate; 2],
    /// Deviation of throughput, percent.
    pub throughput_deviation: OverExperiments,
    /// Deviation of response time, percent.
    pub response_deviation: OverExperiments,
    /// Alone and in company, by experiment.
    pub experiments: Vec<[Sample; 2]>,
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult {
    /// Accesses a second of all machines at saturation.
    pub saturation: f64,
    /// By virtual disk.
    pub vms: Vec<VmResult>,
    /// Share of the blocks read that the caches had while they were sized; none without caches.
    pub hit_rate: Option<f64>,
    /// Cache of each virtual disk in blocks of 4 KiB.
    pub cache_blocks: u32,
    /// Events of all runs.
    pub events: u64,
    /// Of the intervals.
    pub seed: u64,
}

impl Case {
    /// The 4-VM heterogeneous workload of section 4.3: 8 % and three times 24 % of saturation.
    #[must_use]
    pub fn heterogeneous(system: System, workload: Personality) -> Self {
        Self { system, workload, shares: vec![0.08, 0.24, 0.24, 0.24], of: 4, load_of: None }
    }

    /// `vms` machines of 5 % of saturation each (sections 7.2 and 7.3.1).
    #[must_use]
    pub fn low(system: System, workload: Personality, vms: usize) -> Self {
        Self { system, workload, shares: vec![0.05; vms], of: 4, load_of: None }
    }

    /// The same with the machines as they are paced for `other`.
    #[must_use]
    pub fn under_load_of(self, other: System) -> Self {
        Self { load_of: Some(other), ..self }
    }

    /// Its name, for progress and errors.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} on {}, {} machines", self.workload.name(), self.system.name(), self.shares.len())
    }

    /// The system at its saturation.
    #[must_use]
    pub const fn site(&self) -> Site {
        Site { system: self.system, workload: self.workload, of: self.of }
    }

    /// For what the machines are paced.
    #[must_use]
    pub fn load(&self) -> Load {
        let system = self.load_of.unwrap_or(self.system);
        Load { site: Site { system, ..self.site() }, shares: self.shares.clone() }
    }

    /// Measures everything.
    ///
    /// # Errors
    /// The world cannot be, broke, or did nothing.
    pub fn run(&self, settings: &Settings, predictors: &Predictors) -> Result<CaseResult, CaseError> {
        let (site, load) = (self.site(), self.load());
        let saturated = site.saturate(settings, predictors)?;
        let paced = if load.site == site {
            load.pace(settings, predictors, &saturated)?
        } else {
            load.pace(settings, predictors, &load.site.saturate(settings, predictors)?)?
        };
        self.measure(settings, predictors, &saturated, &paced)
    }

    /// Measures with what [`Site::saturate`] gave of [`site`](Self::site) and [`Load::pace`] of [`load`](Self::load):
    /// cases share them.
    ///
    /// # Errors
    /// The world cannot be, broke, or did nothing.
    pub fn measure(
        &self,
        settings: &Settings,
        predictors: &Predictors,
        saturated: &Saturated,
        paced: &[Paced],
    ) -> Result<CaseResult, CaseError> {
        let world = |error| CaseError::World { case: self.name(), error };
        let (vms, events) =
            measure(&saturated.bench(&self.system, settings, predictors), paced).map_err(world)?;
        let vms = vms.ok_or_else(|| CaseError::Nothing(self.name()))?;
        let Saturated { per_second, hit_rate, cache_blocks, .. } = *saturated;
        Ok(CaseResult { saturation: per_second, vms, hit_rate, cache_blocks, events, seed: settings.seed })
    }
}

/// Runs each machine alone and all together, with a seed for each replication. Nothing where a machine did nothing;
/// with the events of all runs.
pub(crate) fn measure(
    bench: &Bench<'_>,
    paced: &[Paced],
) -> Result<(Option<Vec<VmResult>>, u64), WorldError> {
    let all: Vec<Client> = paced.iter().map(|paced| Client::Closed(paced.client)).collect();
    let runs = Runs::perform(bench, &all)?;
    let results = paced
        .iter()
        .zip(runs.compare(bench.settings.seed))
        .map(|(paced, figures)| Some(VmResult { paced: *paced, figures: figures? }));
    Ok((results.collect(), runs.events))
}

/// Each machine alone and all together, with a seed for each replication.
pub(crate) struct Runs {
    /// By machine, then by replication.
    alone: Vec<Vec<Sample>>,
    together: Vec<Vec<Sample>>,
    events: u64,
}

impl Runs {
    pub(crate) fn perform(bench: &Bench<'_>, all: &[Client]) -> Result<Self, WorldError> {
        let none = || vec![Vec::new(); all.len()];
        let mut runs = Self { alone: none(), together: none(), events: 0 };
        let mut seeds = SeedSequence::new(bench.settings.seed);
        for _ in 0..bench.settings.replications.max(1) {
            let seed = seeds.next_seed();
            for (vm, alone) in runs.alone.iter_mut().enumerate() {
                let mut clients = vec![Client::Off; all.len()];
                clients[vm] = all[vm].clone();
                let mut outcome = bench.run(clients, seed)?;
                runs.events += outcome.events.total();
                alone.push(Sample::new(&outcome.vms.swap_remove(vm)));
            }
            let outcome = bench.run(all.to_vec(), seed)?;
            runs.events += outcome.events.total();
            outcome
                .vms
                .iter()
                .zip(&mut runs.together)
                .for_each(|(vm, together)| together.push(Sample::new(vm)));
        }
        Ok(runs)
    }

    /// Of each machine; nothing of one that did nothing.
    pub(crate) fn compare(&self, seed: u64) -> impl Iterator<Item = Option<Compared>> {
        self.alone.iter().zip(&self.together).map(move |(alone, together)| compare(alone, together, seed))
    }
}

/// One machine in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Accesses a second.
    pub per_second: f64,
    /// Mean response time, milliseconds; not a number where nothing completed.
    pub mean_ms: f64,
    /// 99 % of the response times are at most this, milliseconds; not a number where nothing completed.
    pub p99_ms: f64,
}

impl Sample {
    pub(crate) fn new(figures: &VmOutcome) -> Self {
        let summary = figures.summary();
        Self {
            per_second: figures.per_second(),
            mean_ms: summary.as_ref().map_or(f64::NAN, |summary| summary.mean / 1e6),
            p99_ms: summary.as_ref().map_or(f64::NAN, |summary| summary.p99 as f64 / 1e6),
        }
    }
}

pub(crate) fn compare(alone: &[Sample], together: &[Sample], seed: u64) -> Option<Compared> {
    let estimate = |samples: &[Sample], figure: fn(&Sample) -> f64| {
        FigureKind::Positive.estimate(&samples.iter().map(figure).collect::<Vec<_>>(), seed)
    };
    let both = |figure: fn(&Sample) -> f64| Some([estimate(alone, figure)?, estimate(together, figure)?]);
    let experiments: Vec<[Sample; 2]> =
        alone.iter().zip(together).map(|(alone, together)| [*alone, *together]).collect();
    let deviates = |figure: fn(&Sample) -> f64| {
        deviation(experiments.iter().map(|[alone, together]| (figure(alone), figure(together))), seed)
    };
    Some(Compared {
        throughput: both(|sample| sample.per_second)?,
        response_ms: both(|sample| sample.mean_ms)?,
        p99_ms: both(|sample| sample.p99_ms)?,
        throughput_deviation: deviates(|sample| sample.per_second)?,
        response_deviation: deviates(|sample| sample.mean_ms)?,
        experiments,
    })
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
