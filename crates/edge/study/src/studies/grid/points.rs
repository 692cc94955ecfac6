//! Measures the points of a plan, environment by environment in turn ([ESX Disk 2003], section 3; [ESX Adapters 2006]).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_lab::{Environment, LabError, MachineError};
use virtbench_record::{FORMAT, GridPlan, HostUse, Measured, PointRecord, PointStatus};

use crate::machines::Machines;
use crate::runner::event::Observer;
use crate::runner::progress::{Course, Progress, unix_ns};
use crate::runner::steps::{InOrder, measure_in_order};
use crate::studies::grid::definition::{ScheduledPoint, load_of, schedule};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// Machines that may hang and be started anew in one sitting. Emulated guests hang once in a thousand
/// points or so; a run of hours should not end for that, nor hide it: each is a note of the run.
const MAX_RESTARTS: u32 = 3;

/// Measures whatever of the folder's plan is missing. `environments` are in the plan's order.
///
/// # Errors
/// A machine, the target or the folder failed, or `stop` was set. Points measured until then stay.
pub fn measure_points(
    folder: &mut RunFolder,
    environments: &mut [Box<dyn Environment>],
    course: Course,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.grid().cloned() else { return Ok(()) };
    let steps = schedule(&plan);
    let missing = missing_steps(folder, &steps);
    if missing.is_empty() {
        return Ok(());
    }
    let mut measuring =
        Points { plan: &plan, machines: Machines::new(environments, course), restarts_left: MAX_RESTARTS };
    measuring.machines.start_all(folder, stop, observer)?;
    let progress = &mut Progress { stop, observer };
    measure_in_order((steps.len() - missing.len(), &missing), &mut measuring, folder, progress)?;
    measuring.machines.shut_down();
    Ok(())
}

/// The machines of one sitting.
struct Points<'a> {
    plan: &'a GridPlan,
    machines: Machines<'a>,
    restarts_left: u32,
}

impl InOrder<PointRecord> for Points<'_> {
    type Step = ScheduledPoint;

    fn words(&self, step: &ScheduledPoint) -> String {
        format!("{}: {}", self.plan.environments[step.environment], step.point)
    }

    /// A machine that hangs is started anew, unless too many have.
    fn measure(
        &mut self,
        step: &ScheduledPoint,
        folder: &mut RunFolder,
        progress: &mut Progress<'_>,
    ) -> Result<PointRecord, StudyError> {
        let environment = self.plan.environments[step.environment].as_str();
        loop {
            match measure_step(self.plan, step, &mut self.machines, folder, progress.stop) {
                Err(error) if self.restarts_left > 0 && self.machines.hangs(step.environment, &error) => {
                    self.restarts_left -= 1;
                    tracing::warn!(environment, point = %step.point, %error, "hangs and is started anew");
                    progress.remark(&format!("{environment} hangs and is started anew: {error}"));
                    let note = format!("{environment} hung at {} and was started anew", step.point);
                    folder.amend(|provenance| provenance.notes.push(note))?;
                    self.machines.discard(step.environment);
                }
                measured => {
                    let record = measured?;
                    tracing::debug!(environment, point = %step.point, repetition = step.repetition, "measured");
                    return Ok(record);
                }
            }
        }
    }

    fn host<'r>(&self, step: &ScheduledPoint, record: &'r PointRecord) -> Option<&'r HostUse> {
        let measured = record.measured().filter(|_| self.machines.is_on_host(step.environment));
        measured.map(|measured| &measured.host)
    }
}

/// The steps whose points are not in the folder yet, in order.
fn missing_steps(folder: &RunFolder, steps: &[ScheduledPoint]) -> Vec<ScheduledPoint> {
    let environments = folder.provenance().plan.environments();
    let measured: BTreeSet<_> = folder
        .records()
        .iter()
        .map(|record| (record.point, record.repetition, record.environment.as_str()))
        .collect();
    steps
        .iter()
        .filter(|step| {
            !measured.contains(&(step.point, step.repetition, environments[step.environment].as_str()))
        })
        .cloned()
        .collect()
}

fn measure_step(
    plan: &GridPlan,
    step: &ScheduledPoint,
    machines: &mut Machines<'_>,
    folder: &mut RunFolder,
    stop: &AtomicBool,
) -> Result<PointRecord, StudyError> {
    let environment = plan.environments[step.environment].clone();
    let spec = load_of(plan, step.point, step.repetition);
    machines.wake(step.environment, folder, stop)?;
    let measured = machines.measure(step.environment, spec, stop);
    if measured.is_ok() {
        machines.quiesce(step.environment)?;
    }
    let (started_unix_ns, status) = match measured {
        Ok((started_unix_ns, measured)) => {
            check_whole(&environment, &measured, stop)?;
            (started_unix_ns, PointStatus::Measured(Box::new(measured)))
        }
        Err(LabError::Stopped) => return Err(StudyError::Stopped),
        // The agent is well but this load is not possible here, such as 1 KiB blocks on 4 KiB sectors.
        Err(LabError::Machine { source: MachineError::Refused { message, .. }, .. }) => {
            (unix_ns(), PointStatus::Unavailable { why: message })
        }
        Err(error) => return Err(error.into()),
    };
    Ok(PointRecord {
        format: FORMAT,
        point: step.point,
        environment,
        repetition: step.repetition,
        started_unix_ns,
        status,
    })
}

/// A point that was cut short is not a point: it is measured again when the run is resumed.
fn check_whole(environment: &str, measured: &Measured, stop: &AtomicBool) -> Result<(), StudyError> {
    let outcome = &measured.outcome;
    if !outcome.interrupted {
        return Ok(());
    }
    if stop.load(Ordering::Relaxed) {
        return Err(StudyError::Stopped);
    }
    let kinds: Vec<String> =
        outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
    Err(StudyError::Target { environment: environment.to_owned(), why: kinds.join(", ") })
}

#[cfg(test)]
#[path = "points_tests.rs"]
mod tests;
