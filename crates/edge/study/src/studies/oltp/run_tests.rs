use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use virtbench_model::oltp::analyse_oltp;
use virtbench_record::{ApplianceSide, OltpMeasured, OltpRecord, OltpStep, OltpUsers, Plan};

use super::*;
use crate::runner::begun_run::described;
use crate::runner::progress::Progress;
use crate::runner::run::Run;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

use virtbench_samples::oltp as synthetic;

/// Sides without a machine: natively 400 transactions a second from eight users on, in the VM 40 from two on.
#[derive(Default)]
struct Fake {
    boots: Vec<String>,
    measured: usize,
    /// The side that dies under this many users.
    dies: Option<(&'static str, u32)>,
    /// A stop comes in the measurement of this number.
    stop_at: Option<usize>,
}

struct Booted<'a> {
    sides: &'a mut Fake,
    side: String,
}

impl OltpSides for Fake {
    fn storage(&self) -> &Path {
        // Measured in memory, whatever the run folder lies on.
        Path::new("/proc")
    }

    fn boot(
        &mut self,
        side: &ApplianceSide,
        _: &mut Progress<'_>,
    ) -> Result<Box<dyn OltpBoot + '_>, OltpFailure> {
        self.boots.push(side.name.clone());
        Ok(Box::new(Booted { side: side.name.clone(), sides: self }))
    }
}

impl OltpBoot for Booted<'_> {
    fn guest(&self) -> Option<virtbench_record::GuestFacts> {
        None
    }

    fn measure(&mut self, load: OltpLoad, progress: &mut Progress<'_>) -> Result<OltpMeasured, OltpFailure> {
        if self.sides.stop_at == Some(self.sides.measured) {
            progress.stop.store(true, Ordering::Relaxed);
            return Err(OltpFailure::Study(StudyError::Stopped));
        }
        self.sides.measured += 1;
        if self.sides.dies.is_some_and(|(side, users)| side == self.side && users == load.users) {
            return Err(OltpFailure::failed("the database is gone"));
        }
        let (each, most) = if self.side == "vm" { (20, 40) } else { (50, 400) };
        let rate = (u64::from(load.users) * each).min(most);
        Ok(synthetic::measured(load.users, [rate; 10], 100.0 * (1.0 - rate as f64 / most as f64)))
    }
}

fn folder(temp: &TempDir, users: Option<Vec<u32>>) -> RunFolder<OltpRecord> {
    let mut plan = synthetic::plan();
    if let Some(users) = users {
        plan.users = OltpUsers::Given(users);
    }
    RunFolder::create(&temp.path().join("run"), described(Plan::Oltp(plan))).unwrap()
}

fn run(folder: &mut RunFolder<OltpRecord>, sides: &mut Fake) -> Result<(), StudyError> {
    let stop = AtomicBool::new(false);
    run_oltp(folder, sides, &mut Progress { stop: &stop, observer: &mut () })
}

fn of(folder: &RunFolder<OltpRecord>, side: &str, step: OltpStep) -> Vec<(u32, u32)> {
    let matching =
        folder.records().iter().filter(|record| record.key.side == side && record.key.step == step);
    matching.map(|record| (record.key.users, record.key.repetition)).collect()
}

#[test]
fn each_side_is_measured_at_its_saturation_and_both_with_equal_users() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, None);
    let mut sides = Fake::default();
    run(&mut folder, &mut sides).unwrap();
    assert_eq!(of(&folder, "native", OltpStep::Saturation), [(8, 0), (8, 1), (8, 2)]);
    assert_eq!(of(&folder, "native", OltpStep::EqualUsers), [(2, 0), (2, 1), (2, 2)]);
    assert_eq!(of(&folder, "vm", OltpStep::Saturation), [(2, 0), (2, 1), (2, 2)]);
    assert_eq!(of(&folder, "vm", OltpStep::EqualUsers), []);
    // A boot for each search, then one for each measurement; sides take turns in turn.
    let expected =
        ["native", "vm", "native", "native", "vm", "vm", "native", "native", "native", "native", "vm"];
    assert_eq!(sides.boots, expected);
    let analysis = analyse_oltp(&synthetic::plan(), folder.records());
    let equal = &analysis.equal.ratios[0].ratios[&virtbench_record::Quantity::TransactionsPerSecond];
    assert!((equal.value - 0.4).abs() < 1e-9, "{equal:?}");
}

#[test]
fn given_numbers_of_users_are_all_measured_and_the_best_is_taken() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, Some(vec![4, 16]));
    run(&mut folder, &mut Fake::default()).unwrap();
    assert_eq!(of(&folder, "native", OltpStep::Search), [(4, 0), (16, 0)]);
    assert_eq!(of(&folder, "native", OltpStep::Saturation)[0].0, 16);
    assert_eq!(of(&folder, "vm", OltpStep::Saturation)[0].0, 4);
}

#[test]
fn a_side_that_dies_leaves_the_other_its_results_and_is_tried_again_when_the_run_is_resumed() {
    let temp = tempfile::tempdir().unwrap();
    let mut folder = folder(&temp, None);
    run(&mut folder, &mut Fake { dies: Some(("vm", 1)), ..Fake::default() }).unwrap();
    assert_eq!(of(&folder, "native", OltpStep::Saturation).len(), 3);
    assert_eq!(of(&folder, "vm", OltpStep::Saturation), []);
    assert_eq!(
        analyse_oltp(&synthetic::plan(), folder.records()).sides[1].failures,
        ["the database is gone"]
    );
    run(&mut folder, &mut Fake::default()).unwrap();
    assert_eq!(of(&folder, "vm", OltpStep::Saturation).len(), 3);
    assert_eq!(of(&folder, "native", OltpStep::Saturation).len(), 3, "what was measured is kept");
}

#[test]
fn a_database_study_stopped_anywhere_goes_on_where_it_was() {
    let whole = {
        let temp = tempfile::tempdir().unwrap();
        let mut folder = folder(&temp, None);
        run(&mut folder, &mut Fake::default()).unwrap();
        folder
            .records()
            .iter()
            .map(|record| (record.key.side.clone(), record.key.step, record.key.users))
            .collect::<Vec<_>>()
    };
    for stop_at in 0..whole.len() {
        let temp = tempfile::tempdir().unwrap();
        let mut folder = folder(&temp, None);
        let stopped = run(&mut folder, &mut Fake { stop_at: Some(stop_at), ..Fake::default() });
        assert!(stopped.is_err_and(|error| error.is_stopped()), "at {stop_at}");
        assert_eq!(folder.records().len(), stop_at);
        run(&mut folder, &mut Fake::default()).unwrap();
        let records = folder.records().iter();
        let done: Vec<_> =
            records.map(|record| (record.key.side.clone(), record.key.step, record.key.users)).collect();
        assert_eq!(done, whole, "stopped at {stop_at}");
    }
}

#[test]
fn the_storage_that_a_database_is_measured_on_is_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let (out, stop) = (temp.path().join("run"), AtomicBool::new(false));
    let mut run = Run { out: &out, resume: false, command: Vec::new(), stop: &stop, observer: &mut () };
    let study = OltpStudy { plan: synthetic::plan(), root: None };
    study.run(&mut Fake::default(), &mut run).unwrap().unwrap();
    let recorded = virtbench_runs::read_provenance(&out).unwrap().host.disk;
    assert_eq!(recorded.filesystem, "proc", "{recorded:?}");
}
