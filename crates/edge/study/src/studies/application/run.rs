//! A run of the study of an application: each side alone and beside its neighbours, each repetition after a boot of its own.

use std::path::Path;

use virtbench_record::{ApplianceRoot, ApplicationKey, ApplicationPlan, ApplicationRecord};

use super::schedule::words;
use super::sides::{ApplicationFailure, ApplicationSides};
use crate::runner::estimate::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::runner::steps::{Schedule, Steps, Study, Taken, measure_missing, run_study};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// A study of an application.
#[derive(Debug, Clone)]
pub struct ApplicationStudy {
    /// What is measured.
    pub plan: ApplicationPlan,
    /// What its appliances are made of.
    pub roots: Vec<ApplianceRoot>,
}

impl ApplicationStudy {
    /// What is measured, and about how long that takes, where the plan says how long a client takes.
    #[must_use]
    pub fn estimate(plan: &ApplicationPlan) -> Estimate {
        Schedule::estimate(plan)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, sides: &mut dyn ApplicationSides, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        run_study(&self.plan, &mut Measuring { plan: &self.plan, roots: &self.roots, sides }, run)
    }
}

/// Measures whatever of the folder's plan is missing. A measurement that fails leaves a record of that, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was measured until then stays.
pub fn run_application(
    folder: &mut RunFolder<ApplicationRecord>,
    sides: &mut dyn ApplicationSides,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.application().cloned() else { return Ok(()) };
    measure_missing(folder, &plan, &mut Measuring { plan: &plan, roots: &[], sides }, progress)
}

struct Measuring<'a> {
    plan: &'a ApplicationPlan,
    roots: &'a [ApplianceRoot],
    sides: &'a mut dyn ApplicationSides,
}

impl Study for Measuring<'_> {
    type Schedule = ApplicationPlan;

    fn storage(&self) -> Option<&Path> {
        Some(self.sides.storage())
    }

    fn appliances(&self) -> Vec<ApplianceRoot> {
        self.roots.to_vec()
    }

    fn measure(
        &mut self,
        first: ApplicationKey,
        steps: &mut Steps<'_, '_, ApplicationPlan>,
    ) -> Result<(), StudyError> {
        let key = first.clone();
        let side = self.plan.sides.iter().find(|side| side.name == key.side);
        let once = |progress: &mut Progress<'_>| {
            progress.doing(&words(&key));
            let side =
                side.ok_or_else(|| ApplicationFailure::failed(format!("{}: no side: a defect", key.side)))?;
            let (measured, guest) = self.sides.measure(side, key.neighbours, progress)?;
            Ok(Taken::of(measured, guest))
        };
        steps.take(first, once).map(drop)
    }
}
