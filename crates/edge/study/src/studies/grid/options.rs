//! What studies of a grid have in common, the points, how each is measured, and on what; and the one that compares any environments.

use std::path::{Path, PathBuf};

use virtbench_record::{ComparePlan, GridPlan, Plan, Provenance};
use virtbench_runs::RunFolder;

use crate::environments::{EnvironmentUri, FoundEnvironments, NamedEnvironment};
use crate::guests::GuestOptions;
use crate::runner::event::{Estimate, Event};
use crate::runner::progress::Course;
use crate::runner::run::{Run, RunEnd};
use crate::studies::grid::definition::{Grid, check_plan, schedule};
use crate::studies::grid::points::measure_points;
use crate::study_error::StudyError;

/// What a step takes beside its ramp-up and measuring time, in nanoseconds: for the first estimate.
const STEP_OVERHEAD_NS: u64 = 120_000_000;

/// Until a guest, and any other machine, is ready for its first step: as measured under TCG, with what is found out before.
const START_NS: [u64; 2] = [4_000_000_000, 500_000_000];

/// How long a byte of a test disk takes to write, on storage that does 500 MB/s.
const BYTE_NS: u64 = 2;

/// What a run does before its first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// Guests that are booted, one after the other.
    pub guests: usize,
    /// Other machines.
    pub others: usize,
    /// Test disks that are written.
    pub disks: usize,
    /// How often idle machines are watched for as long as a point is measured.
    pub idle: u64,
}

impl Before {
    fn ns(self, size_bytes: u64, time_ns: u64) -> u64 {
        let starts = START_NS[0] * self.guests as u64 + START_NS[1] * self.others as u64;
        let disks = (self.disks as u64).saturating_mul(size_bytes).saturating_mul(BYTE_NS);
        starts.saturating_add(disks).saturating_add(self.idle.saturating_mul(time_ns))
    }
}

/// Points, and how each is measured.
#[derive(Debug, Clone)]
pub struct GridOptions {
    /// The points, repetitions and times.
    pub grid: Grid,
    /// I/Os that each worker keeps outstanding.
    pub outstanding: u32,
    /// Workers.
    pub workers: u32,
    /// Size of the test disk, in bytes.
    pub size_bytes: u64,
    /// Folder for the test disks, instead of the run folder: the storage under it is what is measured.
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What guests are made of.
    pub guest: GuestOptions,
}

impl GridOptions {
    /// What a run is to measure in these environments.
    ///
    /// # Errors
    /// A point is no load that can be applied.
    pub(super) fn provenance(
        &self,
        study: impl FnOnce(GridPlan) -> Plan,
        environments: Vec<String>,
        run: &Run<'_>,
    ) -> Result<Provenance, StudyError> {
        let plan = self.plan(environments)?;
        Ok(run.provenance(study(plan), self.disks_folder(run)))
    }

    /// What is to be measured in these environments.
    fn plan(&self, environments: Vec<String>) -> Result<GridPlan, StudyError> {
        let grid = self.grid.clone();
        let plan = GridPlan {
            grid: grid.name,
            blocks_bytes: grid.blocks_bytes,
            read_percents: grid.read_percents,
            random_percents: grid.random_percents,
            repetitions: grid.repetitions,
            outstanding: self.outstanding,
            workers: self.workers,
            ramp_ns: grid.ramp_ns,
            time_ns: grid.time_ns,
            size_bytes: self.size_bytes,
            environments,
            seed: self.seed,
        };
        check_plan(&plan).map_err(StudyError::input)?;
        Ok(plan)
    }

    /// What is to be measured in so many environments, and about how long that takes.
    ///
    /// # Errors
    /// A point is no load that can be applied, as when it is measured.
    pub fn estimate(&self, environments: usize, before: Before) -> Result<Estimate, StudyError> {
        let plan = self.plan(vec![String::new(); environments])?;
        let measurements = self.grid.points().len() * plan.repetitions as usize * environments;
        Ok(estimate(measurements, &plan, before))
    }

    /// The folder for the test disks.
    pub(super) fn disks_folder<'f, 'a: 'f>(&'f self, run: &Run<'a>) -> &'f Path {
        run.disks_folder(self.target_dir.as_deref())
    }
}

/// Says how much there is to do, once the disks are there.
pub(super) fn announce(folder: &RunFolder, run: &mut Run<'_>, before: Before) {
    let Some(plan) = folder.provenance().plan.grid() else { return };
    let estimate = estimate(schedule(plan).len(), plan, Before { disks: 0, ..before });
    run.observer.event(Event::Planned(&estimate));
}

/// So many steps, and what is done before them.
fn estimate(measurements: usize, plan: &GridPlan, before: Before) -> Estimate {
    let each_ns = plan.ramp_ns.saturating_add(plan.time_ns).saturating_add(STEP_OVERHEAD_NS);
    let steps_ns = each_ns.saturating_mul(measurements as u64);
    let total_ns = if measurements == 0 { 0 } else { before.ns(plan.size_bytes, plan.time_ns) + steps_ns };
    Estimate::of_total(measurements, total_ns / 1_000_000_000 * 1_000_000_000)
}

/// A study of environments.
#[derive(Debug, Clone)]
pub struct Compare {
    /// The points, how each is measured, and what guests are made of that do not say so themselves.
    pub options: GridOptions,
    /// The environments, the reference first.
    pub environments: Vec<NamedEnvironment>,
}

impl Compare {
    /// What is to be measured, and about how long that takes.
    ///
    /// # Errors
    /// The study is impossible.
    pub fn estimate(&self) -> Result<Estimate, StudyError> {
        NamedEnvironment::check(&self.environments).map_err(StudyError::input)?;
        self.options.estimate(self.environments.len(), self.before())
    }

    fn before(&self) -> Before {
        let boots = |environment: &&NamedEnvironment| {
            matches!(environment.uri, EnvironmentUri::Qemu(_) | EnvironmentUri::Libvirt(_))
        };
        let guests = self.environments.iter().filter(boots).count();
        let others = self.environments.len() - guests;
        Before { guests, others, disks: self.environments.len(), idle: 0 }
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was measured. Any other failure is
    /// the answer, and the folder holds what was measured until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        NamedEnvironment::check(&self.environments).map_err(StudyError::input)?;
        let names = self.environments.iter().map(|environment| environment.name.clone()).collect();
        let uris = self.environments.iter().map(|environment| environment.uri.to_string()).collect();
        let plan = |grid| Plan::Compare(ComparePlan { grid, uris });
        let provenance = self.options.provenance(plan, names, run)?;
        let guest = &self.options.guest;
        let found = FoundEnvironments::find(&self.environments, guest, &mut |what| run.remark(what))?;
        let mut folder = run.open(provenance)?;
        let measured = self.measure(&found, &mut folder, run);
        run.end(folder, measured)
    }

    fn measure(
        &self,
        found: &FoundEnvironments<'_>,
        folder: &mut RunFolder,
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let (place, run_name) = (self.options.disks_folder(run), run.name());
        let observer = &mut *run.observer;
        let mut on_progress = |what: &str, done, total| observer.event(Event::Making { what, done, total });
        let mut made = found.make((place, &run_name), self.options.size_bytes, run.stop, &mut on_progress)?;
        let notes = made.notes();
        folder.amend(|provenance| provenance.add_notes(notes))?;
        announce(folder, run, self.before());
        measure_points(folder, &mut made.environments, Course::SIDE_BY_SIDE, run.stop, run.observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A run as it goes, event by event, in milliseconds.
    fn course_ms(guests: usize, idle: u64, points: usize, time_ms: u64) -> u64 {
        let boots = (0..guests as u64).map(|guest| 3_500 + 500 * (guest % 2));
        let watched = (0..idle).map(|_| time_ms + 20);
        let measured = (0..points as u64).map(|point| 100 + time_ms + 90 + point % 3 * 10);
        boots.chain(watched).chain(measured).sum()
    }

    #[test]
    fn the_estimate_is_within_a_fifth_of_a_course_with_boots_and_idle_machines() {
        for (guests, idle, points, time_ms) in
            [(1, 0, 6, 500), (5, 2, 30, 500), (5, 2, 10, 3_000), (0, 0, 8, 1_000)]
        {
            let plan = GridPlan {
                ramp_ns: 100 * MS,
                time_ns: time_ms * MS,
                size_bytes: 1 << 20,
                ..virtbench_samples::grid::plan(&[4096], &[0], &[100], 1)
            };
            let before = Before { guests, others: 0, disks: 1, idle };
            let said_ms = estimate(points, &plan, before).total_ns.unwrap() / MS;
            let true_ms = course_ms(guests, idle, points, time_ms);
            let share = said_ms as f64 / true_ms as f64;
            assert!(
                (0.8..1.2).contains(&share),
                "{said_ms} ms of {true_ms} ms: {guests} guests, {points} points"
            );
        }
    }

    #[test]
    fn a_large_disk_takes_its_time_and_nothing_to_do_takes_none() {
        let plan =
            GridPlan { size_bytes: 10 << 30, ..virtbench_samples::grid::plan(&[4096], &[0], &[100], 1) };
        let before = Before { guests: 0, others: 2, disks: 1, idle: 0 };
        let of = |before| estimate(1, &plan, before).total_ns.unwrap();
        assert!((20..=22).contains(&((of(before) - of(Before { disks: 0, ..before })) / 1_000_000_000)));
        assert_eq!(estimate(0, &plan, before).total_ns, Some(0));
    }
}
