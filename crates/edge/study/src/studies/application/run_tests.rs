use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use virtbench_record::{
    ApplianceSide, ApplicationFailureDetail, ApplicationMeasured, ApplicationPlan, ApplicationRecord,
    ApplicationTier, GuestFacts, Plan,
};

use super::*;
use crate::runner::begun_run::described;
use crate::runner::progress::Progress;
use crate::runner::run::Run;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

use virtbench_samples::application as synthetic;

/// Sides without a machine.
#[derive(Default)]
struct Fake {
    measured: usize,
    /// The measurement of this number fails.
    fails_at: Option<usize>,
    /// A stop comes in the measurement of this number.
    stop_at: Option<usize>,
}

impl ApplicationSides for Fake {
    fn storage(&self) -> &Path {
        // Measured in memory, whatever the run folder lies on.
        Path::new("/proc")
    }

    fn measure(
        &mut self,
        side: &ApplianceSide,
        neighbours: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(ApplicationMeasured, Option<GuestFacts>), ApplicationFailure> {
        let number = self.measured;
        if self.stop_at == Some(number) {
            progress.stop.store(true, Ordering::Relaxed);
            return Err(StudyError::Stopped.into());
        }
        self.measured += 1;
        if self.fails_at == Some(number) {
            return Err(ApplicationFailure::Failed {
                why: "no luck".into(),
                detail: ApplicationFailureDetail { output: Some("hm".into()) },
            });
        }
        let record = synthetic::record(&side.name, neighbours, 0, 100.0);
        Ok((record.measured().unwrap().clone(), None))
    }
}

fn folder(temp: &TempDir) -> RunFolder<ApplicationRecord> {
    RunFolder::create(&temp.path().join("run"), described(Plan::Application(synthetic::plan()))).unwrap()
}

fn run(folder: &mut RunFolder<ApplicationRecord>, sides: &mut Fake) -> Result<(), StudyError> {
    let stop = AtomicBool::new(false);
    run_application(folder, sides, &mut Progress { stop: &stop, observer: &mut () })
}

fn done(folder: &RunFolder<ApplicationRecord>) -> Vec<(String, u32, u32)> {
    let measured = folder.records().iter().filter(|record| record.measured().is_some());
    measured.map(|record| (record.key.side.clone(), record.key.neighbours, record.key.repetition)).collect()
}

#[test]
fn sides_take_turns_alone_and_beside_neighbours() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp);
    run(&mut folder, &mut Fake::default()).unwrap();
    let order: Vec<_> = done(&folder).into_iter().map(|(side, beside, _)| (side, beside)).collect();
    let expected =
        [("native", 0), ("native", 2), ("vm", 0), ("vm", 2)].map(|(side, beside)| (side.to_owned(), beside));
    assert_eq!(order[..4], expected);
    assert_eq!(order[4..8].iter().rev().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(order.len(), 12);
}

#[test]
fn a_study_of_an_application_stopped_anywhere_goes_on_where_it_was() {
    let whole = {
        let temp = tempfile::tempdir().unwrap();
        let mut folder = folder(&temp);
        run(&mut folder, &mut Fake::default()).unwrap();
        done(&folder)
    };
    for stop_at in 0..whole.len() {
        let temp = tempfile::tempdir().unwrap();
        let mut folder = folder(&temp);
        let stopped = run(&mut folder, &mut Fake { stop_at: Some(stop_at), ..Fake::default() });
        assert!(stopped.is_err_and(|error| error.is_stopped()), "at {stop_at}");
        assert_eq!(folder.records().len(), stop_at);
        run(&mut folder, &mut Fake::default()).unwrap();
        assert_eq!(done(&folder), whole, "stopped at {stop_at}");
    }
}

#[test]
fn a_measurement_that_fails_keeps_what_was_printed_and_is_tried_again() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp);
    run(&mut folder, &mut Fake { fails_at: Some(3), ..Fake::default() }).unwrap();
    assert_eq!((done(&folder).len(), folder.records().len()), (11, 12));
    assert_eq!(folder.records()[3].failure(), Some("no luck"));
    run(&mut folder, &mut Fake::default()).unwrap();
    assert_eq!((done(&folder).len(), folder.records().len()), (12, 13));
}

#[test]
fn a_line_of_the_results_is_read_as_it_was_written() {
    for record in synthetic::records() {
        let line = serde_json::to_string(&record).unwrap();
        let read: ApplicationRecord = serde_json::from_str(&line).unwrap();
        assert_eq!(read, record, "{line}");
    }
}

#[test]
fn the_estimate_counts_the_boots_of_neighbours_and_tiers() {
    const SECOND_NS: u64 = 1_000_000_000;
    let alone = ApplicationPlan { takes_ns: Some(60 * SECOND_NS), tiers: Vec::new(), ..synthetic::plan() };
    let tier = ApplicationTier {
        name: "database".into(),
        appliance: "mariadb".into(),
        root: String::new(),
        prepare: Vec::new(),
    };
    let tiered = ApplicationPlan { tiers: vec![tier], ..alone.clone() };
    let total = |plan: &ApplicationPlan| ApplicationStudy::estimate(plan).total_ns.unwrap();
    // Three repetitions of a native side and a VM, alone and beside two neighbours.
    assert_eq!(total(&alone), (12 * 60 + 3 * (4 + 10) * (1 + 3)) * SECOND_NS);
    assert_eq!(total(&tiered) - total(&alone), 3 * (4 + 10) * 2 * SECOND_NS);
}

#[test]
fn the_storage_that_sides_of_an_application_work_on_is_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let (out, stop) = (temp.path().join("run"), AtomicBool::new(false));
    let mut run = Run { out: &out, resume: false, command: Vec::new(), stop: &stop, observer: &mut () };
    let study = ApplicationStudy { plan: synthetic::plan(), roots: Vec::new() };
    study.run(&mut Fake::default(), &mut run).unwrap().unwrap();
    let recorded = virtbench_runs::read_provenance(&out).unwrap().host.disk;
    assert_eq!(recorded.filesystem, "proc", "{recorded:?}");
}
