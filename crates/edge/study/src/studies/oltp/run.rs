//! A run of the study of a database: what saturates each side, then each at its saturation and all with equal users, each repetition
//! after a boot of its own.

use virtbench_record::{
    ApplianceRoot, OltpFailureDetail, OltpKey, OltpMeasured, OltpRecord, OltpStep, OltpStudyPlan, Plan,
    Status,
};

use super::schedule::{SideSearch, estimate, wanted};
use super::sides::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
use crate::runner::course::unix_ns;
use crate::runner::estimate::Estimate;
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// A study of a database.
#[derive(Debug, Clone)]
pub struct OltpStudy {
    /// What is measured.
    pub plan: OltpStudyPlan,
    /// What its appliance is made of, where that is known.
    pub root: Option<ApplianceRoot>,
}

impl OltpStudy {
    /// What is measured, and about how long that takes.
    #[must_use]
    pub fn estimate(plan: &OltpStudyPlan) -> Estimate {
        let (measurements, total_ns) = estimate(plan);
        Estimate::of_total(usize::try_from(measurements).unwrap_or(usize::MAX), total_ns)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, sides: &mut dyn OltpSides, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let mut provenance = run.provenance(Plan::Oltp(self.plan.clone()), sides.storage());
        provenance.appliances.extend(self.root.clone());
        let mut folder: RunFolder<OltpRecord> = run.open(provenance)?;
        let progress = &mut Progress { stop: run.stop, observer: run.observer };
        let measured = run_oltp(&mut folder, sides, progress);
        run.end(folder, measured)
    }
}

/// Measures whatever of the folder's plan is missing. A side that fails is left with a record of that, and the others go on.
///
/// # Errors
/// The host or the folder fails, or it was to stop. What was measured until then stays.
pub fn run_oltp(
    folder: &mut RunFolder<OltpRecord>,
    sides: &mut dyn OltpSides,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = folder.provenance().plan.oltp().cloned() else { return Ok(()) };
    let planned = OltpStudy::estimate(&plan);
    progress.observer.event(Event::Planned(&planned));
    OltpMeasuring { folder, plan: &plan, total: planned.measurements as u64 }.go(sides, progress)
}

struct OltpMeasuring<'a> {
    folder: &'a mut RunFolder<OltpRecord>,
    plan: &'a OltpStudyPlan,
    total: u64,
}

impl OltpMeasuring<'_> {
    fn go(&mut self, sides: &mut dyn OltpSides, progress: &mut Progress<'_>) -> Result<(), StudyError> {
        for index in 0..self.plan.sides.len() {
            self.search(index, sides, progress)?;
        }
        for one in wanted(self.plan, self.folder.records()) {
            check(progress)?;
            let key = OltpKey {
                side: one.side.name.clone(),
                step: one.step,
                users: one.users,
                repetition: one.repetition,
            };
            let measured = sides.boot(one.side, progress);
            match measured {
                Ok(mut boot) => {
                    self.measure(&key, boot.as_mut(), progress)?;
                }
                Err(failure) => self.failed(&key, failure, progress)?,
            }
        }
        Ok(())
    }

    /// Raises the users of a side until its saturation is known, in one boot.
    fn search(
        &mut self,
        index: usize,
        sides: &mut dyn OltpSides,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        let side = &self.plan.sides[index];
        let next = |records: &[OltpRecord]| SideSearch::of(self.plan, side, records).next_users();
        let Some(first) = next(self.folder.records()) else { return Ok(()) };
        check(progress)?;
        let key = |users| OltpKey { side: side.name.clone(), step: OltpStep::Search, users, repetition: 0 };
        let mut boot = match sides.boot(side, progress) {
            Ok(boot) => boot,
            Err(failure) => return self.failed(&key(first), failure, progress),
        };
        let mut wanted = Some(first);
        while let Some(users) = wanted {
            check(progress)?;
            if !self.measure(&key(users), boot.as_mut(), progress)? {
                return Ok(());
            }
            wanted = SideSearch::of(self.plan, side, self.folder.records()).next_users();
        }
        Ok(())
    }

    /// Measures once; says whether that succeeded.
    fn measure(
        &mut self,
        key: &OltpKey,
        boot: &mut (dyn OltpBoot + '_),
        progress: &mut Progress<'_>,
    ) -> Result<bool, StudyError> {
        let OltpKey { side, step, users, repetition } = key;
        let users_are = if *users == 1 { "1 user".into() } else { format!("{users} users") };
        let what = match step {
            OltpStep::Search => format!("{side}, {users_are}: looking for saturation"),
            OltpStep::Saturation => {
                format!("{side}, {users_are}: at saturation, repetition {}", repetition + 1)
            }
            OltpStep::EqualUsers => {
                format!("{side}, {users_are}: equal users, repetition {}", repetition + 1)
            }
        };
        progress.doing(&what);
        let time_ns = if *step == OltpStep::Search { self.plan.search_ns } else { self.plan.time_ns };
        let load = OltpLoad {
            users: *users,
            ramp_up_ns: self.plan.ramp_up_ns,
            time_ns,
            seed: self.plan.seed.wrapping_add(u64::from(*repetition)),
        };
        let started_unix_ns = unix_ns();
        match boot.measure(load, progress) {
            Ok(measured) => {
                if let (None, Some(guest)) = (&self.folder.provenance().guest, boot.guest()) {
                    self.folder.amend(|provenance| provenance.guest = Some(guest))?;
                }
                self.add(key, started_unix_ns, Status::Measured(Box::new(measured)), progress)?;
                Ok(true)
            }
            Err(failure) => self.failed(key, failure, progress).map(|()| false),
        }
    }

    fn failed(
        &mut self,
        key: &OltpKey,
        failure: OltpFailure,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        match failure {
            OltpFailure::Study(error) => Err(error),
            OltpFailure::Side(why, outcome) => {
                progress.remark(&format!("{}: {why}", key.side));
                self.add(
                    key,
                    unix_ns(),
                    Status::Failed { why, detail: OltpFailureDetail { outcome } },
                    progress,
                )
            }
        }
    }

    fn add(
        &mut self,
        key: &OltpKey,
        started_unix_ns: u64,
        status: Status<OltpMeasured, OltpFailureDetail>,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        self.folder.add(OltpRecord::new(key.clone(), started_unix_ns, status))?;
        let done = self.folder.records().len() as u64;
        progress.observer.event(Event::Done { done: done.min(self.total), total: self.total });
        let host = self.folder.records().last().and_then(OltpRecord::measured).map(|measured| &measured.host);
        progress.observer.event(Event::Recorded(host));
        Ok(())
    }
}

fn check(progress: &Progress<'_>) -> Result<(), StudyError> {
    progress.check().map_err(StudyError::from)
}
