//! The same load through different virtual adapters and over different backings ([ESX Adapters 2006]).

use virtbench_lab::{Adapter, Environment, GuestDisk, available_memory_bytes};
use virtbench_record::{Plan, Provenance, SetupFacts};

use super::options::{Before, GridOptions, announce};
use crate::disks::disk::Contents;
use crate::disks::images::Images;
use crate::guests::{Extras, Guests};
use crate::runner::event::Event;
use crate::runner::prerequisites::{check_tools, guests_that_fit};
use crate::runner::progress::Course;
use crate::runner::run::{Run, RunEnd};
use crate::setup::Setup;
use crate::studies::grid::points::measure_points;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// What is compared where nothing is named: three paravirtual or modern ones, and the LSI Logic of [ESX Adapters 2006].
pub const USUAL_ADAPTERS: [&str; 4] = ["virtio-blk", "virtio-scsi", "nvme", "mptsas1068"];

/// A study of configurations of a VM's disk.
#[derive(Debug, Clone)]
pub struct Adapters {
    /// The points, and how each is measured.
    pub options: GridOptions,
    /// The configurations.
    pub setups: Vec<Setup>,
    /// Guests kept booted at once; as many as fit the free memory where nothing is said.
    pub booted: Option<usize>,
}

impl Adapters {
    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was measured. Any other failure is
    /// the answer, and the folder holds what was measured until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let names = self.setups.iter().map(ToString::to_string).collect();
        let provenance = self.options.provenance(Plan::Adapters, names, run)?;
        check_tools(&self.setups)?;
        let mut adapters: Vec<&'static Adapter> = self.setups.iter().map(|setup| setup.adapter).collect();
        adapters.sort_by_key(|adapter| adapter.name);
        adapters.dedup();
        let remark = &mut |what: &str| run.remark(what);
        let guests = Guests::of_qemu(&self.options.guest, &adapters, Extras::default(), remark)?;
        let mut folder = run.open(provenance)?;
        let measured = self.measure(&guests, &mut folder, run);
        run.end(folder, measured)
    }

    /// What a run does before its first measurement.
    #[must_use]
    pub fn before(&self) -> Before {
        Before { guests: self.setups.len(), others: 0, disks: self.setups.len(), idle: 2 }
    }

    fn measure(&self, guests: &Guests, folder: &mut RunFolder, run: &mut Run<'_>) -> Result<(), StudyError> {
        let (target_dir, run_name) = (self.options.disks_folder(run), run.name());
        let observer = &mut *run.observer;
        let images = Images::prepare(
            target_dir,
            &run_name,
            &self.setups,
            self.options.size_bytes,
            Contents::Written,
            run.stop,
            &mut |what, done, total| observer.event(Event::Making { what, done, total }),
        )?;
        let asked: Vec<(GuestDisk, SetupFacts)> = self
            .setups
            .iter()
            .zip(images.disks())
            .map(|(setup, (disk, allocated_bytes))| (disk.clone(), setup.facts(*allocated_bytes)))
            .collect();
        let course = Course { quiesce: true, booted: self.booted() };
        folder.amend(|provenance| describe(provenance, &images, &asked, course))?;
        let mut environments: Vec<Box<dyn Environment>> = asked
            .into_iter()
            .map(|(disk, facts)| guests.vm(&facts.name.clone(), disk, Some(facts), Vec::new()))
            .collect::<Result<_, _>>()?;
        announce(folder, run, self.before());
        measure_points(folder, &mut environments, course, run.stop, run.observer)
    }

    /// How many guests stay booted: as many as were asked for, or as fit four fifths of the free memory.
    fn booted(&self) -> usize {
        if let Some(booted) = self.booted {
            return booted;
        }
        let Some(free_bytes) = available_memory_bytes() else { return self.setups.len() };
        let fit = guests_that_fit(self.options.guest.memory_bytes, free_bytes / 5 * 4);
        usize::try_from(fit).unwrap_or(usize::MAX).max(1)
    }
}

fn describe(provenance: &mut Provenance, images: &Images, asked: &[(GuestDisk, SetupFacts)], course: Course) {
    if provenance.setups.is_empty() {
        provenance.setups = asked.iter().map(|(_, facts)| facts.clone()).collect();
    }
    let mut notes = images.notes().to_vec();
    if course.booted < asked.len() {
        notes.push(format!(
            "only {} of {} guests were kept booted at once: the others were booted in turns",
            course.booted,
            asked.len()
        ));
    }
    provenance.add_notes(notes);
}
