//! A run of the study of management operations: for each number of VMs these are made, warmed up, operated on piece by piece,
//! and removed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_operations::judged;
use virtbench_platforms::{Failure, Platform};
use virtbench_record::{
    FailureKind, OperationsKey, OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord,
};
use virtbench_units::format_duration_ns;

use super::fleet::{Fleet, patience, patiently};
use super::piece::{Log, PieceLoad, Starts, measure_piece};
use super::platform::Tenants;
use super::schedule::{Pace, rounded_s};
use crate::runner::progress::{Progress, nanoseconds, unix_ns};
use crate::runner::run::{Run, RunEnd};
use crate::runner::steps::{Steps, Study, measure_missing, run_study};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// How long removing the VMs of a run may take.
pub(crate) const REMOVE_LIMIT: Duration = Duration::from_secs(900);

/// How long the platform may take to say whether it is there again.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How often a piece of a search may be no result.
const MOST_TRIES: usize = 2;

/// A study of management operations.
#[derive(Debug, Clone)]
pub struct OperationsStudy {
    /// What is measured.
    pub plan: OperationsPlan,
}

impl OperationsStudy {
    /// Measures whatever is missing in the run folder, and removes the VMs that were made for that.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(
        &self,
        platform: &dyn Platform,
        tenants: Option<&mut Tenants>,
        run: &mut Run<'_>,
    ) -> Result<RunEnd, StudyError> {
        let mut measuring = OperationsMeasuring::of(&self.plan, platform, tenants, run.stop);
        let measured = run_study(&self.plan, &mut measuring, run)?;
        measuring.end(&mut Progress { stop: run.stop, observer: &mut *run.observer });
        Ok(measured)
    }
}

/// Measures whatever of the folder's plan is missing. Whatever happens, the VMs of the run are removed in the end.
///
/// # Errors
/// The platform or the folder fails, or it was to stop. What was measured until then stays.
pub fn run_operations(
    folder: &mut RunFolder<OperationsRecord>,
    platform: &dyn Platform,
    tenants: Option<&mut Tenants>,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.operations().cloned() else { return Ok(()) };
    let mut measuring = OperationsMeasuring::of(&plan, platform, tenants, progress.stop);
    let measured = measure_missing(folder, &plan, &mut measuring, progress);
    measuring.end(progress);
    measured
}

/// Removes the VMs of the run, once the platform answers, and looks whether that is so.
fn remove_all(platform: &dyn Platform, patience: Duration) -> Result<(), Failure> {
    patiently(
        patience,
        || false,
        || {
            let until = Instant::now() + REMOVE_LIMIT;
            platform.remove_all(until)?;
            let left: Vec<String> = platform.list(until)?.into_iter().map(|(name, _)| name).collect();
            match left.first() {
                None => Ok(()),
                // What was cut off has completed afterwards.
                Some(first) => {
                    let message = format!("{} VMs are there again, {first} among them", left.len());
                    Err(Failure::new(FailureKind::TimedOut, message))
                }
            }
        },
    )
}

struct OperationsMeasuring<'a> {
    plan: &'a OperationsPlan,
    platform: &'a dyn Platform,
    tenants: Option<&'a mut Tenants>,
    pace: Pace,
    stop: &'a AtomicBool,
    /// Whether no VM of the run is left.
    are_removed: bool,
}

impl Study for OperationsMeasuring<'_> {
    type Schedule = OperationsPlan;

    fn storage(&self) -> Option<&Path> {
        self.tenants.as_deref().and_then(Tenants::storage)
    }

    fn notes(&self) -> Vec<String> {
        let facts = self.platform.facts();
        [format!("{}: {}", facts.address, facts.software)].into_iter().chain(facts.notes).collect()
    }

    /// Whatever is missing at a number of VMs, which are made once.
    fn measure(
        &mut self,
        first: OperationsKey,
        steps: &mut Steps<'_, '_, OperationsPlan>,
    ) -> Result<(), StudyError> {
        self.are_removed = false;
        let measured = self.at(first, steps);
        steps.progress.doing(&format!("removing the VMs of {}", first.vms));
        self.end(steps.progress);
        measured
    }
}

impl<'a> OperationsMeasuring<'a> {
    fn of(
        plan: &'a OperationsPlan,
        platform: &'a dyn Platform,
        tenants: Option<&'a mut Tenants>,
        stop: &'a AtomicBool,
    ) -> Self {
        // A run that was killed has left some.
        Self { plan, platform, tenants, pace: Pace::default(), stop, are_removed: false }
    }

    /// Removes the VMs of the run, where some may be left.
    fn end(&mut self, progress: &mut Progress<'_>) {
        if std::mem::replace(&mut self.are_removed, true) {
            return;
        }
        if let Err(failure) = remove_all(self.platform, self.patience()) {
            progress.remark(&format!("VMs of this run are left for the next one to remove: {failure}"));
        }
    }

    fn at(
        &mut self,
        first: OperationsKey,
        steps: &mut Steps<'_, '_, OperationsPlan>,
    ) -> Result<(), StudyError> {
        let mut fleet = self.prepare(first.vms, steps)?;
        self.warm(&fleet, first, steps.progress)?;
        let mut key = first;
        loop {
            let is_whole = self.piece(&fleet, key, steps)?;
            let Some(next) = steps.next().filter(|next| next.vms == first.vms) else { return Ok(()) };
            key = next;
            if !is_whole {
                steps.progress.doing("removing VMs whose state the outage has left unknown");
                remove_all(self.platform, self.patience())?;
                fleet = self.prepare(first.vms, steps)?;
            }
        }
    }

    fn prepare(
        &mut self,
        vms: u32,
        steps: &mut Steps<'_, '_, OperationsPlan>,
    ) -> Result<Fleet<'a>, StudyError> {
        steps.progress.doing(&format!("making {vms} VMs"));
        let begun = Instant::now();
        let fleet = Fleet::prepare(self.platform, self.plan, vms, self.stop)?;
        self.pace.made(vms, nanoseconds(begun.elapsed()));
        if let Some(left_ns) = self.pace.left_ns(self.plan, vms, steps.recorded().all) {
            steps.progress.remark(&format!(
                "{vms} VMs were made in {}; what is left takes about {}",
                format_duration_ns(rounded_s(nanoseconds(begun.elapsed()))),
                format_duration_ns(rounded_s(left_ns))
            ));
        }
        Ok(fleet)
    }

    fn patience(&self) -> Duration {
        patience(Duration::from_nanos(self.plan.limit_ns))
    }

    /// Other operations are due at other times in each of the `tries` of a piece: what chance has spoiled once is not repeated.
    fn load(&self, key: OperationsKey, length_ns: u64, tries: usize) -> PieceLoad {
        let clients = match &self.plan.load {
            OperationsLoad::Closed(clients) => *clients,
            OperationsLoad::Open(_) | OperationsLoad::Max { .. } => self.plan.most_at_once,
        };
        let tries = (tries as u64) << 32;
        let seed = self.plan.seed.wrapping_add(u64::from(key.piece) + 1).wrapping_add(tries);
        let starts = key.per_minute.map_or(Starts::Closed, |per_minute| Starts::Open { per_minute });
        PieceLoad { starts, clients, length: Duration::from_nanos(length_ns), seed }
    }

    fn warm(
        &self,
        fleet: &Fleet<'_>,
        first: OperationsKey,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        if self.plan.warm_ns == 0 {
            return Ok(());
        }
        progress.doing("warming up");
        measure_piece(fleet, &self.load(first, self.plan.warm_ns, 0), None, progress.stop).map(drop)
    }

    /// A piece, while the tenants have their load.
    fn with_tenants(
        &mut self,
        fleet: &Fleet<'_>,
        load: &PieceLoad,
        log: Log,
        stop: &AtomicBool,
    ) -> Result<OperationsMeasured, StudyError> {
        let Some(tenants) = self.tenants.as_deref_mut() else {
            return measure_piece(fleet, load, Some(log), stop);
        };
        let (measured, done) = thread::scope(|scope| {
            let lent = tenants.lend();
            let tenants = scope.spawn(move || lent.load(load.length, load.seed, stop));
            let measured = measure_piece(fleet, load, Some(log), stop);
            (measured, tenants.join().unwrap_or(Err(StudyError::Stopped)))
        });
        let measured = measured?;
        Ok(OperationsMeasured { tenants: done?, ..measured })
    }

    /// Ends the run where the platform does not come back, or where a search gets no answer twice: it would go on for ever.
    fn after_incomplete(
        &self,
        key: OperationsKey,
        why: &str,
        steps: &Steps<'_, '_, OperationsPlan>,
    ) -> Result<(), StudyError> {
        let is_over = || steps.progress.stop.load(Ordering::Relaxed);
        patiently(self.patience(), is_over, || self.platform.list(Instant::now() + ANSWER_LIMIT))?;
        let tries = tries(key, steps);
        if !matches!(self.plan.load, OperationsLoad::Max { .. }) || tries < MOST_TRIES {
            return Ok(());
        }
        let message = format!("piece {} is no result {tries} times: {why}", key.piece + 1);
        Err(Failure::new(FailureKind::Unreachable, message).into())
    }

    /// Measures a piece; whether the VMs are as they should be afterwards.
    fn piece(
        &mut self,
        fleet: &Fleet<'_>,
        key: OperationsKey,
        steps: &mut Steps<'_, '_, OperationsPlan>,
    ) -> Result<bool, StudyError> {
        let OperationsKey { vms, piece, per_minute } = key;
        let at = match per_minute {
            None => "closed loop".to_owned(),
            Some(rate) if rate <= 0.0 => "no operations".to_owned(),
            Some(rate) => format!("{rate:.0} a minute"),
        };
        steps.progress.doing(&format!("{vms} VMs, {at}: piece {}", piece + 1));
        let log = Log::begin(steps.folder(), vms, piece)?;
        let load = self.load(key, self.plan.piece_ns, tries(key, steps));
        let started_unix_ns = unix_ns();
        let measured = self.with_tenants(fleet, &load, log, steps.progress.stop)?;
        self.pace.drained(measured.elapsed_ns.saturating_sub(self.plan.piece_ns));
        let was_away = measured.outage_ns > 0 || (measured.vms_at_end == 0 && measured.intended > 0);
        let status = judged(measured, &self.plan.load, per_minute, self.plan.piece_ns);
        let record = OperationsRecord::new(key, started_unix_ns, status);
        let incomplete = record.incomplete().map(|(why, _)| why.to_owned());
        steps.add(record)?;
        let Some(why) = incomplete else { return Ok(true) };
        self.after_incomplete(key, &why, steps)?;
        Ok(!was_away)
    }
}

/// How often a piece has been measured.
fn tries(key: OperationsKey, steps: &Steps<'_, '_, OperationsPlan>) -> usize {
    let is_piece = |record: &&OperationsRecord| (record.key.vms, record.key.piece) == (key.vms, key.piece);
    steps.recorded().all.iter().filter(is_piece).count()
}
