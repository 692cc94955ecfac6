//! A run of a study of sides: each repetition measures every side that is left, in turn from one end and from the other.

use std::time::Instant;

use virtbench_record::{
    GuestFacts, NoDetail, Plan, SamplesKey, SamplesMeasured, SamplesRecord, SidesPlan, Status,
};
use virtbench_runs::RunFolder;

use crate::runner::course::{nanoseconds, unix_ns};
use crate::runner::estimate::Estimate;
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// Why nothing came of measuring a side.
pub(crate) enum SideFailure {
    /// This measurement failed; others may fare better.
    Measurement(String),
    /// This host does not have what it needs.
    Unavailable(String),
    /// The study cannot go on.
    Study(StudyError),
}

impl From<StudyError> for SideFailure {
    fn from(error: StudyError) -> Self {
        Self::Study(error)
    }
}

/// A study whose sides are measured one after the other.
pub(crate) trait SidesStudy {
    /// What is measured.
    fn plan(&self) -> Plan;

    /// Measures a side once, by its name in the plan.
    ///
    /// # Errors
    /// It is not to be had here, fails, or the study cannot go on.
    fn measure(&mut self, side: &str, progress: &mut Progress<'_>) -> Result<SamplesMeasured, SideFailure>;

    /// The guest that was measured, once one was.
    fn guest(&self) -> Option<GuestFacts>;
}

/// What is measured, and about how long that takes.
pub(crate) fn estimate_sides(plan: &SidesPlan) -> Estimate {
    let measurements = plan.sides.len() * plan.repetitions as usize;
    Estimate::of_total(measurements, plan.takes_ns.saturating_mul(measurements as u64))
}

/// Measures what is missing in the run folder. A side that fails leaves a record of that, and the others go on.
///
/// # Errors
/// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
pub(crate) fn run_sides(study: &mut dyn SidesStudy, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
    let provenance = run.provenance(study.plan(), run.out);
    let mut folder: RunFolder<SamplesRecord> = run.open(provenance)?;
    let measured =
        measure_missing(&mut folder, study, &mut Progress { stop: run.stop, observer: run.observer });
    run.end(folder, measured)
}

fn measure_missing(
    folder: &mut RunFolder<SamplesRecord>,
    study: &mut dyn SidesStudy,
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let Some(plan) = study.plan().sides() else { return Ok(()) };
    let planned = estimate_sides(&plan);
    progress.observer.event(Event::Planned(&planned));
    let left = missing(&plan, folder.records());
    let total = planned.measurements as u64;
    let before = total - left.len() as u64;
    for (done, (side, repetition)) in (before..).zip(left) {
        progress.check().map_err(StudyError::from)?;
        progress.observer.event(Event::Done { done, total });
        let is_out = |record: &SamplesRecord| record.key.side == side && record.unavailable().is_some();
        if folder.records().iter().any(is_out) {
            continue;
        }
        progress.doing(&format!("{side}: repetition {}", repetition + 1));
        measure(folder, study, (&side, repetition), progress)?;
    }
    progress.observer.event(Event::Done { done: total, total });
    Ok(())
}

fn measure(
    folder: &mut RunFolder<SamplesRecord>,
    study: &mut dyn SidesStudy,
    (side, repetition): (&str, u32),
    progress: &mut Progress<'_>,
) -> Result<(), StudyError> {
    let (started_unix_ns, begun) = (unix_ns(), Instant::now());
    let status = match study.measure(side, progress) {
        Ok(measured) => {
            let guest = study.guest().filter(|_| folder.provenance().guest.is_none());
            if guest.is_some() {
                folder.amend(|provenance| provenance.guest = guest)?;
            }
            let elapsed_ns = nanoseconds(begun.elapsed());
            Status::Measured(Box::new(SamplesMeasured { elapsed_ns, ..measured }))
        }
        Err(SideFailure::Study(error)) => return Err(error),
        Err(SideFailure::Measurement(why)) => {
            progress.remark(&format!("{side}: {why}"));
            Status::Failed { why, detail: NoDetail {} }
        }
        Err(SideFailure::Unavailable(why)) => {
            progress.remark(&format!("{side} is unavailable: {why}"));
            Status::Unavailable { why }
        }
    };
    folder.add(SamplesRecord::new(
        SamplesKey { side: side.to_owned(), repetition },
        started_unix_ns,
        status,
    ))?;
    let host = folder.records().last().and_then(SamplesRecord::measured);
    progress.observer.event(Event::Recorded(host.and_then(|measured| measured.host.as_ref())));
    Ok(())
}

/// What has not been measured: sides in turn, each repetition from the other end. What failed is tried again, what is not to be had here
/// as well: it may be there now.
fn missing(plan: &SidesPlan, records: &[SamplesRecord]) -> Vec<(String, u32)> {
    let is_there = |side: &str, repetition: u32| {
        let of = |record: &&SamplesRecord| record.key.side == side && record.key.repetition == repetition;
        records.iter().filter(of).any(|record| record.measured().is_some())
    };
    let mut left = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut turn: Vec<String> = plan.sides.clone();
        if repetition % 2 == 1 {
            turn.reverse();
        }
        left.extend(
            turn.into_iter().filter(|side| !is_there(side, repetition)).map(|side| (side, repetition)),
        );
    }
    left
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use virtbench_record::{Better, Sample};
    use virtbench_samples::samples as synthetic;

    use super::*;

    /// Sides of which one fails the first time and one is not to be had.
    struct Invented {
        tries: Vec<String>,
    }

    impl SidesStudy for Invented {
        fn plan(&self) -> Plan {
            Plan::Network(synthetic::plan())
        }

        fn measure(&mut self, side: &str, _: &mut Progress<'_>) -> Result<SamplesMeasured, SideFailure> {
            self.tries.push(side.to_owned());
            match side {
                "tap-vhost" => Err(SideFailure::Unavailable("no vhost".into())),
                "tap" if self.tries.iter().filter(|tried| *tried == "tap").count() == 1 => {
                    Err(SideFailure::Measurement("the guest died".into()))
                }
                _ => {
                    let samples = vec![Sample::new("requests", "1/s", Better::Higher, 1.0)];
                    Ok(SamplesMeasured { samples, ..SamplesMeasured::default() })
                }
            }
        }

        fn guest(&self) -> Option<GuestFacts> {
            None
        }
    }

    fn run_once(study: &mut Invented, out: &std::path::Path, resume: bool) -> RunEnd {
        let stop = AtomicBool::new(false);
        let run = &mut Run { out, resume, command: Vec::new(), stop: &stop, observer: &mut () };
        run_sides(study, run).unwrap()
    }

    #[test]
    fn what_failed_is_recorded_and_tried_again_by_a_run_that_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("run");
        let mut study = Invented { tries: Vec::new() };
        run_once(&mut study, &out, false).unwrap();
        assert_eq!(study.tries, ["native", "tap", "tap-vhost", "tap", "native", "native", "tap"]);
        study.tries = vec!["tap".into()];
        run_once(&mut study, &out, true).unwrap();
        assert_eq!(
            study.tries[1..],
            ["tap"],
            "what is not to be had is not tried within a folder that says so"
        );
    }
}
