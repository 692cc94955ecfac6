//! A run of the study of management operations: for each number of VMs these are made, warmed up, operated on piece by piece,
//! and removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_model::Probe;
use virtbench_model::operations::search_rate;
use virtbench_operations::judged;
use virtbench_platforms::{Failure, Platform};
use virtbench_record::{
    FailureKind, OperationsKey, OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord, Plan,
};
use virtbench_units::format_duration_ns;

use super::fleet::Fleet;
use super::log::Log;
use super::outage::{patience, patiently};
use super::piece::{PieceLoad, Starts, measure_piece};
use super::schedule::{Pace, estimate_operations, first_missing, rounded_s};
use super::tenants::Tenants;
use crate::runner::course::{nanoseconds, unix_ns};
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
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
        let storage = tenants.as_deref().and_then(Tenants::storage).unwrap_or(run.out);
        let mut provenance = run.provenance(Plan::Operations(self.plan.clone()), storage);
        let facts = platform.facts();
        provenance.add_notes([format!("{}: {}", facts.address, facts.software)]);
        provenance.add_notes(facts.notes);
        let mut folder: RunFolder<OperationsRecord> = run.open(provenance)?;
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let measured = run_operations(&mut folder, platform, tenants, progress);
        run.end(folder, measured)
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
    let planned = estimate_operations(&plan);
    progress.observer.event(Event::Planned(&planned));
    let total = planned.measurements as u64;
    let (pace, stop) = (Pace::default(), progress.stop);
    let mut sitting = OperationsMeasuring { folder, plan: &plan, platform, tenants, total, pace, stop };
    for vms in &plan.vms {
        let measured = sitting.step(*vms, progress);
        progress.doing(&format!("removing the VMs of {vms}"));
        match (remove_all(platform, patience(Duration::from_nanos(plan.limit_ns))), measured) {
            (Ok(()), measured) => measured?,
            (Err(failure), measured) => {
                progress.remark(&format!("VMs of this run are left for the next one to remove: {failure}"));
                measured?;
            }
        }
    }
    Ok(())
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
    folder: &'a mut RunFolder<OperationsRecord>,
    plan: &'a OperationsPlan,
    platform: &'a dyn Platform,
    tenants: Option<&'a mut Tenants>,
    total: u64,
    pace: Pace,
    stop: &'a AtomicBool,
}

impl<'a> OperationsMeasuring<'a> {
    /// Whatever is missing at a number of VMs.
    fn step(&mut self, vms: u32, progress: &mut Progress<'_>) -> Result<(), StudyError> {
        let Some(first) = self.next(vms, 0) else { return Ok(()) };
        let mut fleet = self.prepare(vms, progress)?;
        self.warm(&fleet, first, progress)?;
        let mut piece = first;
        loop {
            let is_whole = self.measure(&fleet, vms, piece, progress)?;
            let Some(next) = self.next(vms, piece.0 + 1) else { return Ok(()) };
            piece = next;
            if !is_whole {
                progress.doing("removing VMs whose state the outage has left unknown");
                remove_all(self.platform, self.patience())?;
                fleet = self.prepare(vms, progress)?;
            }
        }
    }

    fn prepare(&mut self, vms: u32, progress: &mut Progress<'_>) -> Result<Fleet<'a>, StudyError> {
        progress.doing(&format!("making {vms} VMs"));
        let begun = Instant::now();
        let fleet = Fleet::prepare(self.platform, self.plan, vms, self.stop)?;
        self.pace.made(vms, nanoseconds(begun.elapsed()));
        if let Some(left_ns) = self.pace.left_ns(self.plan, vms, self.folder.records()) {
            progress.remark(&format!(
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

    /// The next piece from this number on, and its load: nothing where all is measured.
    fn next(&self, vms: u32, from: u32) -> Option<(u32, Option<f64>)> {
        let records = self.folder.records();
        if let OperationsLoad::Max { .. } = &self.plan.load {
            let (search, pieces) = search_rate(self.plan, vms, records)?;
            return search.next_probe().map(|probe| match probe {
                Probe::Closed => (pieces, None),
                Probe::Offered { per_second } => (pieces, Some(per_second * 60.0)),
            });
        }
        let piece = first_missing(self.plan, vms, from, records)?;
        Some((piece, self.plan.rate(piece)))
    }

    /// How often a piece has been measured.
    fn tries(&self, (vms, piece): (u32, u32)) -> usize {
        self.folder
            .records()
            .iter()
            .filter(|record| (record.key.vms, record.key.piece) == (vms, piece))
            .count()
    }

    /// Other operations are due at other times in each of the `tries` of a piece: what chance has spoiled once is not repeated.
    fn load(&self, (piece, per_minute): (u32, Option<f64>), length_ns: u64, tries: usize) -> PieceLoad {
        let clients = match &self.plan.load {
            OperationsLoad::Closed(clients) => *clients,
            OperationsLoad::Open(_) | OperationsLoad::Max { .. } => self.plan.most_at_once,
        };
        let tries = (tries as u64) << 32;
        let seed = self.plan.seed.wrapping_add(u64::from(piece) + 1).wrapping_add(tries);
        let starts = per_minute.map_or(Starts::Closed, |per_minute| Starts::Open { per_minute });
        PieceLoad { starts, clients, length: Duration::from_nanos(length_ns), seed }
    }

    fn warm(
        &self,
        fleet: &Fleet<'_>,
        first: (u32, Option<f64>),
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
        (vms, piece): (u32, u32),
        why: &str,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        progress.remark(&format!("Piece {} is no result: {why}", piece + 1));
        let is_over = || self.stop.load(Ordering::Relaxed);
        patiently(self.patience(), is_over, || self.platform.list(Instant::now() + ANSWER_LIMIT))?;
        let tries = self.tries((vms, piece));
        if !matches!(self.plan.load, OperationsLoad::Max { .. }) || tries < MOST_TRIES {
            return Ok(());
        }
        let message = format!("piece {} is no result {tries} times: {why}", piece + 1);
        Err(Failure::new(FailureKind::Unreachable, message).into())
    }

    /// Says how far it is; nobody knows how many pieces a search needs.
    fn done(&self, progress: &mut Progress<'_>) {
        let done = self.folder.records().len() as u64;
        progress.observer.event(match self.plan.load {
            OperationsLoad::Max { .. } => Event::Searched { done, most: self.total },
            OperationsLoad::Open(_) | OperationsLoad::Closed(_) => {
                Event::Done { done: done.min(self.total), total: self.total }
            }
        });
    }

    /// Measures a piece; whether the VMs are as they should be afterwards.
    fn measure(
        &mut self,
        fleet: &Fleet<'_>,
        vms: u32,
        (piece, per_minute): (u32, Option<f64>),
        progress: &mut Progress<'_>,
    ) -> Result<bool, StudyError> {
        let at = match per_minute {
            None => "closed loop".to_owned(),
            Some(rate) if rate <= 0.0 => "no operations".to_owned(),
            Some(rate) => format!("{rate:.0} a minute"),
        };
        progress.doing(&format!("{vms} VMs, {at}: piece {}", piece + 1));
        let log = Log::begin(self.folder.path(), vms, piece)?;
        let load = self.load((piece, per_minute), self.plan.piece_ns, self.tries((vms, piece)));
        let started_unix_ns = unix_ns();
        let measured = self.with_tenants(fleet, &load, log, progress.stop)?;
        self.pace.drained(measured.elapsed_ns.saturating_sub(self.plan.piece_ns));
        let was_away = measured.outage_ns > 0 || (measured.vms_at_end == 0 && measured.intended > 0);
        let status = judged(measured, &self.plan.load, per_minute, self.plan.piece_ns);
        let record = OperationsRecord::new(OperationsKey { vms, piece, per_minute }, started_unix_ns, status);
        self.folder.add(record)?;
        let incomplete = self.folder.records().last().and_then(OperationsRecord::incomplete);
        if let Some(why) = incomplete.map(|(why, _)| why.to_owned()) {
            self.after_incomplete((vms, piece), &why, progress)?;
            self.done(progress);
            return Ok(!was_away);
        }
        self.done(progress);
        let host = self.folder.records().last().and_then(OperationsRecord::measured);
        progress.observer.event(Event::Recorded(host.map(|measured| &measured.host)));
        Ok(true)
    }
}
