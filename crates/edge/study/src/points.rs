//! Measures the points of a plan, environment by environment in turn (paper 1, section 3; paper 2).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use thiserror::Error;
use virtbench_lab::{Environment, LabError, MachineError};
use virtbench_record::{FORMAT, GuestsState, Measured, PointRecord, PointStatus};

use crate::folder::{FolderError, RunFolder};
use crate::grid::load_of;
use crate::machines::Machines;
use crate::schedule::{Step, schedule};

/// A study that ended before its time. What was measured is in its folder.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A machine or the host failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The folder failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The target stopped working.
    #[error("{environment}: operations on the test disk failed: {why}")]
    Target {
        /// Where.
        environment: String,
        /// What failed.
        why: String,
    },
    /// A set has a machine that there is not: a defect.
    #[error("the plan names {0}, which there is not: a defect of virtbench")]
    NoMachine(String),
    /// A set has a workload that there is not: a defect.
    #[error("the plan names workload {0}, which there is not: a defect of virtbench")]
    NoWorkload(usize),
    /// A share is asked for of a saturation that was not found.
    #[error("the saturation of {workload} was not found, so that a share of it means nothing: {why}")]
    NoSaturation {
        /// The workload.
        workload: String,
        /// What became of the first machine that was to find it.
        why: String,
    },
    /// A share is asked for of a workload that cannot be held to a rate.
    #[error(
        "{workload} cannot run at a share of its saturation: --pattern needs a load, fileserver, mailserver, \
         webserver, a model or dbench"
    )]
    NoRate {
        /// The workload.
        workload: String,
    },
    /// Guests were lost again and again.
    #[error("{0} guests were lost: this host does not keep them up; results until here are kept")]
    TooManyLost(usize),
    /// It was asked to stop.
    #[error("stopped; --resume goes on with the missing points")]
    Stopped,
}

/// Machines that may hang and be started anew in one sitting. Emulated guests hang once in a thousand
/// points or so; a run of hours should not end for that, nor hide it: each is a note of the run.
const MAX_RESTARTS: u32 = 3;

/// What happens in a study, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// The machines of these environments are being started.
    Starting(&'a str),
    /// A step begins.
    Measuring {
        /// Steps measured so far, of this and earlier sittings.
        done: usize,
        /// Steps in all.
        total: usize,
        /// The step.
        step: &'a Step,
        /// The name of its environment.
        environment: &'a str,
    },
    /// A machine hung and is started anew; its point is measured again.
    Restarting {
        /// The name of its environment.
        environment: &'a str,
        /// What happened, with its console's last lines.
        error: &'a StudyError,
    },
    /// What guests without a load cost is being measured.
    Idling(GuestsState),
    /// A step is in the folder.
    Recorded(&'a PointRecord),
}

/// How machines are kept while others are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Whether those that wait are quiesced. What it costs to let them run is then measured once, at
    /// the beginning of each sitting.
    pub quiesce: bool,
    /// How many are kept booted at once, at least one. With fewer than there are environments, that
    /// which was not used for longest makes room.
    pub booted: usize,
}

impl Course {
    /// All booted, all running.
    pub const SIDE_BY_SIDE: Self = Self { quiesce: false, booted: usize::MAX };
}

/// Measures whatever of the folder's plan is missing. `environments` are in the plan's order.
///
/// # Errors
/// A machine, the target or the folder failed, or `stop` was set. Points measured until then stay.
pub fn measure_points(
    folder: &mut RunFolder,
    environments: &mut [Box<dyn Environment>],
    course: Course,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), StudyError> {
    let plan = folder.provenance().plan.clone();
    let steps = schedule(&plan);
    let missing = missing_steps(folder, &steps);
    if missing.is_empty() {
        return Ok(());
    }
    let mut machines = Machines::new(environments, course);
    machines.start_all(folder, stop, on_event)?;
    let before = steps.len() - missing.len();
    let mut restarts_left = MAX_RESTARTS;
    for (index, step) in missing.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(StudyError::Stopped);
        }
        let environment = plan.environments[step.environment].as_str();
        on_event(Event::Measuring { done: before + index, total: steps.len(), step: &step, environment });
        let record = loop {
            match measure_step(&plan, &step, &mut machines, folder, stop) {
                Err(error) if restarts_left > 0 && machines.hangs(step.environment, &error) => {
                    restarts_left -= 1;
                    on_event(Event::Restarting { environment, error: &error });
                    let note = format!("{environment} hung at {} and was started anew", step.point);
                    folder.amend(|provenance| provenance.notes.push(note))?;
                    machines.discard(step.environment);
                }
                measured => break measured?,
            }
        };
        folder.add(record)?;
        if let Some(record) = folder.records().last() {
            on_event(Event::Recorded(record));
        }
    }
    machines.shut_down();
    Ok(())
}

/// The steps whose points are not in the folder yet, in order.
fn missing_steps(folder: &RunFolder, steps: &[Step]) -> Vec<Step> {
    let environments = &folder.provenance().plan.environments;
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
    plan: &virtbench_record::Plan,
    step: &Step,
    machines: &mut Machines<'_>,
    folder: &mut RunFolder,
    stop: &AtomicBool,
) -> Result<PointRecord, StudyError> {
    let environment = plan.environments[step.environment].clone();
    let spec = load_of(plan, step.point, step.repetition);
    machines.wake(step.environment, folder)?;
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

pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "points_tests.rs"]
mod tests;
