//! What cases have in common: a system at its saturation, and machines paced to shares of it.

use virtbench_fence::predict::Predictors;

use crate::case_error::CaseError;
use crate::pace::{Bench, Paced, pace, saturation, size_cache};
use crate::settings::Settings;
use crate::system::System;
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::{Span, WorldError};

/// A system under a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Site {
    /// How disks are stored.
    pub system: System,
    /// What the machines do.
    pub workload: Personality,
    /// Machines while saturation is sought.
    pub of: usize,
}

/// A site with its caches sized, and what it does at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturated {
    /// Cache of each virtual disk in blocks of 4 KiB; 0 without caches.
    pub cache_blocks: u32,
    /// How long its runs take.
    pub span: Span,
    /// Accesses a second of all machines.
    pub per_second: f64,
    /// Share of the blocks read that the caches had while they were sized; none without caches.
    pub hit_rate: Option<f64>,
}

impl Site {
    /// Sizes the caches and finds the saturation.
    ///
    /// # Errors
    /// The world cannot be, or broke.
    pub fn saturate(&self, settings: &Settings, predictors: &Predictors) -> Result<Saturated, CaseError> {
        let found = || {
            let Self { system, workload, of } = self;
            let mut pilot =
                Bench { system, settings, predictors, cache_blocks: 0, span: settings.span(f64::MAX) };
            let hit_rate = size_cache(&mut pilot, *workload, *of)?;
            let span = settings.span(saturation(&pilot, *workload, *of)?);
            let per_second = saturation(&Bench { span, ..pilot }, *workload, *of)?;
            Ok(Saturated { cache_blocks: pilot.cache_blocks, span, per_second, hit_rate })
        };
        found().map_err(|error| self.broke(error))
    }

    fn broke(&self, error: WorldError) -> CaseError {
        CaseError::World { case: format!("{} on {}", self.workload.name(), self.system.name()), error }
    }
}

impl Saturated {
    /// The site ready to be run; `system` may be another over the same caches.
    pub(crate) const fn bench<'a>(
        &self,
        system: &'a System,
        settings: &'a Settings,
        predictors: &'a Predictors,
    ) -> Bench<'a> {
        Bench { system, settings, predictors, cache_blocks: self.cache_blocks, span: self.span }
    }
}

/// Machines with a share each of a site's saturation.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The site whose saturation the shares are of.
    pub site: Site,
    /// By virtual disk.
    pub shares: Vec<f64>,
}

impl Load {
    /// The threads and think times with which each machine alone does its share.
    ///
    /// # Errors
    /// The world cannot be, or broke.
    pub fn pace(
        &self,
        settings: &Settings,
        predictors: &Predictors,
        saturated: &Saturated,
    ) -> Result<Vec<Paced>, CaseError> {
        let bench = saturated.bench(&self.site.system, settings, predictors);
        pace(&bench, self.site.workload, &self.shares, saturated.per_second)
            .map_err(|error| self.site.broke(error))
    }
}
