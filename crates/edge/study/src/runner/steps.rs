//! The loop of every study: it asks what comes next, has it measured, and records what became of it, until nothing is left.
//!
//! A study is two things. Its [`Schedule`] is pure: from the plan and the records it says which measurement is next. The [`Study`]
//! itself has the machines and measures. All else is here: the run folder, what is known of host and guest, failures, progress, a stop
//! and the end.
//!
//! Where the plan fixes the order, and the machines stay up from the first measurement to the last, the study is [`InOrder`]: it is given
//! what is missing, one after the other.

use std::path::Path;

use thiserror::Error;
use virtbench_record::{
    ApplianceRoot, GuestFacts, HostUse, Measurement, MeasurementKey, NoDetail, Plan, Record, Status,
};
use virtbench_runs::RunFolder;

use crate::runner::event::{Estimate, Event};
use crate::runner::progress::{Progress, unix_ns};
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// Why there is no result. `D` is what is known of a failure beside its reason.
#[derive(Debug, Error)]
pub enum NoResult<D = NoDetail> {
    /// This measurement failed; others may succeed.
    #[error("{why}")]
    Failed {
        /// What happened.
        why: String,
        /// What else is known.
        detail: D,
    },
    /// This host lacks what it needs.
    #[error("{0}")]
    Unavailable(String),
    /// The study cannot go on.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl<D: Default> NoResult<D> {
    /// A failure of which only the reason is known.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into(), detail: D::default() }
    }
}

/// What was measured, and what came to be known of the machines meanwhile.
pub(crate) struct Taken<M> {
    pub(crate) measured: M,
    /// The guest that was measured; the first one that is known is recorded.
    pub(crate) guest: Option<GuestFacts>,
    /// What `run.json` should say of the machines.
    pub(crate) notes: Vec<String>,
}

impl<M> Taken<M> {
    /// This, of a guest or natively.
    pub(crate) fn of(measured: M, guest: Option<GuestFacts>) -> Self {
        Self { measured, guest, notes: Vec::new() }
    }
}

/// The records of a run folder.
pub(crate) struct Recorded<'a, K: MeasurementKey> {
    /// All, in the order in which they were made.
    pub(crate) all: &'a [Measurement<K>],
    /// Those since the run was begun or last resumed. What failed in them is not tried again before the next time.
    pub(crate) latest: &'a [Measurement<K>],
}

// Derived, they would ask the same of keys.
impl<K: MeasurementKey> Clone for Recorded<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: MeasurementKey> Copy for Recorded<'_, K> {}

impl<K: MeasurementKey> Recorded<'_, K> {
    /// Whether a measurement like `key` is to be made: it is not there, and was not tried before in vain since the run was resumed.
    pub(crate) fn lacks(&self, is_key: impl Fn(&K) -> bool) -> bool {
        !self.not_lacked().any(is_key)
    }

    /// Measurements that are there, or were tried in vain since the run was resumed.
    pub(crate) fn not_lacked(&self) -> impl Iterator<Item = &'_ K> {
        let there = self.all.iter().filter(|record| record.measured().is_some());
        there.chain(self.latest).map(|record| &record.key)
    }
}

/// What a study measures and in which order. Pure: the plan and the records decide.
pub(crate) trait Schedule {
    /// Which measurement it is.
    type Key: MeasurementKey;

    /// As it is recorded.
    fn plan(&self) -> Plan;

    /// How many measurements there are, and about how long they take.
    fn estimate(&self) -> Estimate;

    /// The next measurement; nothing once all are done.
    fn next(&self, recorded: Recorded<'_, Self::Key>) -> Option<Self::Key>;

    /// How many are left; nothing where that is not known.
    fn left(&self, recorded: Recorded<'_, Self::Key>) -> Option<u64>;

    /// The host while something was measured, if it was sampled.
    fn host<'m>(&self, measured: &'m <Self::Key as MeasurementKey>::Measured) -> Option<&'m HostUse>;

    /// What is said to a user of a record at once.
    fn remarks(&self, record: &Measurement<Self::Key>) -> Vec<String>;
}

/// What measures.
pub(crate) trait Study {
    /// What is measured in which order.
    type Schedule: Schedule;

    /// A folder or file on the disk that is measured; nothing where that is the run folder's.
    fn storage(&self) -> Option<&Path> {
        None
    }

    /// What the appliances are made of.
    fn appliances(&self) -> Vec<ApplianceRoot> {
        Vec::new()
    }

    /// What `run.json` should say from the beginning.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes the first of the measurements that are due, and those after it for which the same machines stay up.
    ///
    /// # Errors
    /// The study cannot go on.
    fn measure(
        &mut self,
        first: KeyOf<Self>,
        steps: &mut Steps<'_, '_, Self::Schedule>,
    ) -> Result<(), StudyError>;
}

/// The key of a study's measurements.
pub(crate) type KeyOf<S> = <<S as Study>::Schedule as Schedule>::Key;
type MeasuredOf<S> = <<S as Schedule>::Key as MeasurementKey>::Measured;
type DetailOf<S> = <<S as Schedule>::Key as MeasurementKey>::Detail;

/// Measures what is missing in the run folder.
///
/// # Errors
/// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
pub(crate) fn run_study<S: Study>(
    schedule: &S::Schedule,
    study: &mut S,
    run: &mut Run<'_>,
) -> Result<RunEnd, StudyError> {
    let mut provenance = run.provenance(schedule.plan(), study.storage().unwrap_or(run.out));
    provenance.appliances = study.appliances();
    provenance.add_notes(study.notes());
    let mut folder: RunFolder<Measurement<KeyOf<S>>> = run.open(provenance)?;
    let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
    let measured = measure_missing(&mut folder, schedule, study, progress);
    run.end(folder, measured)
}

/// Measures what is missing. A measurement that fails leaves a record of that, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was measured until then stays.
pub(crate) fn measure_missing<S: Study>(
    folder: &mut RunFolder<Measurement<KeyOf<S>>>,
    schedule: &S::Schedule,
    study: &mut S,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let planned = schedule.estimate();
    progress.observer.event(Event::Planned(&planned));
    let before = folder.records().len();
    let mut steps = Steps { folder, schedule, before, planned, progress };
    if before > 0 {
        steps.say_how_far();
    }
    while let Some(key) = steps.next() {
        steps.progress.check()?;
        let known = steps.folder.records().len();
        study.measure(key, &mut steps)?;
        if steps.folder.records().len() == known {
            return Err(StudyError::input("a measurement has left no record: a defect"));
        }
    }
    Ok(())
}

/// What measures in an order that the plan fixes.
pub(crate) trait InOrder<R: Record> {
    /// Which measurement it is.
    type Step;

    /// The same in words.
    fn words(&self, step: &Self::Step) -> String;

    /// Measures. What cannot be had here is in the record; what fails ends the run, and is tried again by the next one.
    ///
    /// # Errors
    /// It failed, or it was to stop.
    fn measure(
        &mut self,
        step: &Self::Step,
        folder: &mut RunFolder<R>,
        progress: &mut Progress<'_>,
    ) -> Result<R, StudyError>;

    /// This host meanwhile, if it was sampled.
    fn host<'r>(&self, step: &Self::Step, record: &'r R) -> Option<&'r HostUse>;
}

/// Measures these steps, before which so many were `done`, and records each.
///
/// # Errors
/// One fails, the folder does, or it was to stop. What was measured until then stays.
pub(crate) fn measure_in_order<R: Record, S: InOrder<R>>(
    (done, missing): (usize, &[S::Step]),
    study: &mut S,
    folder: &mut RunFolder<R>,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    for (index, step) in missing.iter().enumerate() {
        progress.check()?;
        progress.observer.event(Event::Measuring { done: done + index, what: &study.words(step) });
        let record = study.measure(step, folder, progress)?;
        folder.add(record)?;
        let host = folder.records().last().and_then(|record| study.host(step, record));
        progress.observer.event(Event::Recorded(host));
    }
    Ok(())
}

/// The measurements of a run, step by step.
pub(crate) struct Steps<'a, 'p, S: Schedule> {
    folder: &'a mut RunFolder<Measurement<S::Key>>,
    schedule: &'a S,
    /// Records of earlier times.
    before: usize,
    planned: Estimate,
    /// Where it is told what happens.
    pub(crate) progress: &'a mut Progress<'p>,
}

impl<S: Schedule> Steps<'_, '_, S> {
    /// The records so far.
    pub(crate) fn recorded(&self) -> Recorded<'_, S::Key> {
        let all = self.folder.records();
        Recorded { all, latest: all.get(self.before..).unwrap_or_default() }
    }

    /// The run folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The measurement that is due now.
    pub(crate) fn next(&self) -> Option<S::Key> {
        self.schedule.next(self.recorded())
    }

    /// Measures and records what became of it; whether there is a result.
    ///
    /// # Errors
    /// The study cannot go on, the folder fails, or it was to stop.
    pub(crate) fn take(
        &mut self,
        key: S::Key,
        measure: impl FnOnce(&mut Progress<'_>) -> Result<Taken<MeasuredOf<S>>, NoResult<DetailOf<S>>>,
    ) -> Result<bool, StudyError> {
        self.progress.check()?;
        let started_unix_ns = unix_ns();
        let status = match measure(self.progress) {
            Ok(Taken { measured, guest, notes }) => {
                self.keep(guest, notes)?;
                Status::measured(measured)
            }
            Err(NoResult::Failed { why, detail }) => Status::Failed { why, detail },
            Err(NoResult::Unavailable(why)) => Status::Unavailable { why },
            Err(NoResult::Study(error)) => return Err(error),
        };
        self.add(Measurement::new(key, started_unix_ns, status))
    }

    /// Records what became of a measurement; whether there is a result.
    ///
    /// # Errors
    /// The folder fails.
    pub(crate) fn add(&mut self, record: Measurement<S::Key>) -> Result<bool, StudyError> {
        for remark in self.schedule.remarks(&record) {
            self.progress.remark(&remark);
        }
        self.folder.add(record)?;
        self.say_how_far();
        let measured = self.folder.records().last().and_then(Measurement::measured);
        let host = measured.and_then(|measured| self.schedule.host(measured));
        self.progress.observer.event(Event::Recorded(host));
        Ok(measured.is_some())
    }

    /// Keeps what is new of the machines.
    fn keep(&mut self, guest: Option<GuestFacts>, notes: Vec<String>) -> Result<(), StudyError> {
        let known = self.folder.provenance();
        let is_new = (known.guest.is_none() && guest.is_some())
            || notes.iter().any(|note| !known.notes.contains(note));
        if is_new {
            self.folder.amend(|provenance| {
                provenance.guest = provenance.guest.take().or(guest);
                provenance.add_notes(notes);
            })?;
        }
        Ok(())
    }

    fn say_how_far(&mut self) {
        let (done, planned) = (self.folder.records().len() as u64, self.planned.measurements as u64);
        if self.planned.is_bound {
            self.progress.observer.event(Event::Searched { done, most: planned });
        } else {
            let left = self.schedule.left(self.recorded());
            self.progress.done(done, left, planned);
        }
    }
}
