//! A run of the study of management operations: for each number of VMs these are made, warmed up, operated on piece by piece,
//! and removed.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_model::Probe;
use virtbench_model::operations::search_rate;
use virtbench_platforms::{Failure, Platform};
use virtbench_record::{
    FORMAT, FailureKind, OperationsLoad, OperationsMeasured, OperationsPlan, OperationsRecord,
    OperationsStatus, Plan,
};

use super::fleet::Fleet;
use super::log::Log;
use super::piece::{PieceLoad, Starts, measure_piece};
use super::schedule::{estimate_operations, first_missing};
use super::tenants::Tenants;
use crate::applications::Progress;
use crate::course::unix_ns;
use crate::event::Event;
use crate::folder::RunFolder;
use crate::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// How long removing the VMs of a run may take.
pub(crate) const REMOVE_LIMIT: Duration = Duration::from_secs(900);

/// How long the platform may take to say whether it is there again.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The largest share of operations that may miss the platform in a piece.
const MOST_MISSING: f64 = 0.1;
/// How often a piece may be no result.
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
        let mut provenance = run.provenance(Plan::Operations(self.plan.clone()), run.out);
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
    let mut sitting = Sitting { folder, plan: &plan, platform, tenants, total };
    for vms in &plan.vms {
        let measured = sitting.step(*vms, progress);
        progress.doing(&format!("removing the VMs of {vms}"));
        match (platform.remove_all(Instant::now() + REMOVE_LIMIT), measured) {
            (Ok(_), measured) => measured?,
            (Err(failure), measured) => {
                progress.remark(&format!("VMs of this run are left for the next one to remove: {failure}"));
                measured?;
            }
        }
    }
    Ok(())
}

/// After an outage a piece of which more than a tenth of the operations never reached the platform is no result, nor is one of which none
/// did. Where nobody failed to answer, too few VMs for a rate are a caution, and while the highest rate is searched they say that it is
/// too high.
pub(super) fn judged(measured: OperationsMeasured, load: &OperationsLoad) -> OperationsStatus {
    let (intended, unreachable) = (measured.intended, measured.unreachable());
    let none = intended > 0 && measured.not_issued >= intended;
    let missing = match load {
        OperationsLoad::Open(_) | OperationsLoad::Closed(_) if unreachable > 0 => measured.not_reached(),
        _ if none => intended,
        _ => unreachable,
    };
    if missing as f64 <= MOST_MISSING * intended as f64 {
        return OperationsStatus::Measured(Box::new(measured));
    }
    let why = format!(
        "{missing} of {intended} operations never reached the platform ({unreachable} found nobody who answered, {} no VM in a state for \
         them), and more than a tenth is no result",
        missing - unreachable
    );
    OperationsStatus::Incomplete { why, partly: Box::new(measured) }
}

struct Sitting<'a> {
    folder: &'a mut RunFolder<OperationsRecord>,
    plan: &'a OperationsPlan,
    platform: &'a dyn Platform,
    tenants: Option<&'a mut Tenants>,
    total: u64,
}

impl Sitting<'_> {
    /// Whatever is missing at a number of VMs.
    fn step(&mut self, vms: u32, progress: &mut Progress<'_>) -> Result<(), StudyError> {
        let Some(first) = self.next(vms, 0) else { return Ok(()) };
        progress.doing(&format!("making {vms} VMs"));
        let fleet = Fleet::prepare(self.platform, self.plan, vms, progress.stop)?;
        self.warm(&fleet, first, progress)?;
        let mut piece = first;
        loop {
            self.measure(&fleet, vms, piece, progress)?;
            let Some(next) = self.next(vms, piece.0 + 1) else { return Ok(()) };
            piece = next;
        }
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

    fn load(&self, (piece, per_minute): (u32, Option<f64>), length_ns: u64) -> PieceLoad {
        let clients = match &self.plan.load {
            OperationsLoad::Closed(clients) => *clients,
            OperationsLoad::Open(_) | OperationsLoad::Max { .. } => self.plan.most_at_once,
        };
        let seed = self.plan.seed.wrapping_add(u64::from(piece) + 1);
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
        measure_piece(fleet, &self.load(first, self.plan.warm_ns), None, progress.stop).map(drop)
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

    /// Ends the run where the platform does not come back, or where the same piece is no result twice: a search would go on for ever.
    fn after_incomplete(&self, vms: u32, piece: u32, progress: &mut Progress<'_>) -> Result<(), StudyError> {
        let same = |record: &&OperationsRecord| (record.vms, record.piece) == (vms, piece);
        let (why, _) =
            self.folder.records().iter().rev().find(same).and_then(OperationsRecord::incomplete).unzip();
        let why = why.unwrap_or_default();
        progress.remark(&format!("Piece {} is no result: {why}", piece + 1));
        self.platform.list(Instant::now() + ANSWER_LIMIT)?;
        if self.folder.records().iter().filter(same).count() < MOST_TRIES {
            return Ok(());
        }
        let message = format!("piece {} is no result {MOST_TRIES} times: {why}", piece + 1);
        Err(Failure::new(FailureKind::Unreachable, message).into())
    }

    fn measure(
        &mut self,
        fleet: &Fleet<'_>,
        vms: u32,
        (piece, per_minute): (u32, Option<f64>),
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        let at = match per_minute {
            None => "closed loop".to_owned(),
            Some(rate) if rate <= 0.0 => "no operations".to_owned(),
            Some(rate) => format!("{rate:.0} a minute"),
        };
        progress.doing(&format!("{vms} VMs, {at}: piece {}", piece + 1));
        let log = Log::begin(self.folder.path(), vms, piece)?;
        let load = self.load((piece, per_minute), self.plan.piece_ns);
        let started_unix_ns = unix_ns();
        let measured = self.with_tenants(fleet, &load, log, progress.stop)?;
        let status = judged(measured, &self.plan.load);
        let is_incomplete = matches!(status, OperationsStatus::Incomplete { .. });
        let record = OperationsRecord { format: FORMAT, vms, piece, per_minute, started_unix_ns, status };
        self.folder.add(record)?;
        if is_incomplete {
            self.after_incomplete(vms, piece, progress)?;
        }
        let done = self.folder.records().len() as u64;
        progress.observer.event(Event::Done { done: done.min(self.total), total: self.total });
        let host = self.folder.records().last().and_then(OperationsRecord::measured);
        progress.observer.event(Event::Recorded(host.map(|measured| &measured.host)));
        Ok(())
    }
}
