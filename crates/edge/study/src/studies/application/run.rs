//! A run of the study of an application: each side alone and beside its neighbours, each repetition after a boot of its own.

use virtbench_record::{
    ApplianceRoot, ApplicationFailureDetail, ApplicationPlan, ApplicationRecord, Plan, Status,
};

use super::schedule::{Measurement, estimate, missing};
use super::sides::{ApplicationFailure, ApplicationSides};
use crate::runner::course::unix_ns;
use crate::runner::estimate::Estimate;
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
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
        estimate(plan)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, sides: &mut dyn ApplicationSides, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let mut provenance = run.provenance(Plan::Application(self.plan.clone()), sides.storage());
        provenance.appliances.clone_from(&self.roots);
        let mut folder: RunFolder<ApplicationRecord> = run.open(provenance)?;
        let progress = &mut Progress { stop: run.stop, observer: run.observer };
        let measured = run_application(&mut folder, sides, progress);
        run.end(folder, measured)
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
    let planned = estimate(&plan);
    progress.observer.event(Event::Planned(&planned));
    let left = missing(&plan, folder.records());
    let total = planned.measurements as u64;
    let before = total - left.len() as u64;
    for (done, one) in (before..).zip(left) {
        progress.check().map_err(StudyError::from)?;
        progress.observer.event(Event::Done { done, total });
        progress.doing(&words(&one));
        measure(folder, one, sides, progress)?;
    }
    progress.observer.event(Event::Done { done: total, total });
    Ok(())
}

fn words(one: &Measurement<'_>) -> String {
    let company = match one.neighbours {
        0 => "alone".to_owned(),
        1 => "beside 1 neighbour".to_owned(),
        many => format!("beside {many} neighbours"),
    };
    format!("{}, {company}: repetition {}", one.side.name, one.repetition + 1)
}

fn measure(
    folder: &mut RunFolder<ApplicationRecord>,
    one: Measurement<'_>,
    sides: &mut dyn ApplicationSides,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let started_unix_ns = unix_ns();
    let status = match sides.measure(one.side, one.neighbours, progress) {
        Ok((measured, guest)) => {
            if folder.provenance().guest.is_none() && guest.is_some() {
                folder.amend(|provenance| provenance.guest = guest)?;
            }
            Status::Measured(Box::new(measured))
        }
        Err(ApplicationFailure::Study(error)) => return Err(error),
        Err(ApplicationFailure::Measurement { why, output }) => {
            progress.remark(&format!("{}: {why}", words(&one)));
            Status::Failed { why, detail: ApplicationFailureDetail { output } }
        }
    };
    folder.add(ApplicationRecord::new(one.key(), started_unix_ns, status))?;
    let host = folder.records().last().and_then(ApplicationRecord::measured).map(|measured| &measured.host);
    progress.observer.event(Event::Recorded(host));
    Ok(())
}
