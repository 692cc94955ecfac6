//! The same load natively and in a VM ([ESX Disk 2003], section 3).

use std::sync::atomic::Ordering;

use virtbench_lab::{Adapter, Environment, GuestDisk, Native, find_adapter};
use virtbench_record::Plan;

use super::options::{Before, GridOptions, announce};
use crate::course::Course;
use crate::disk::StudyDisk;
use crate::event::Event;
use crate::folder::RunFolder;
use crate::guests::{Extras, Guests};
use crate::points::measure_points;
use crate::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// Names of the environments, the reference first.
const ENVIRONMENTS: [&str; 2] = ["native", "vm"];

/// A study of one disk, natively and in a VM.
#[derive(Debug, Clone)]
pub struct NativeVsVm {
    /// The points, and how each is measured.
    pub options: GridOptions,
    /// Adapter of the VM's disk.
    pub adapter: String,
}

impl NativeVsVm {
    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was measured. Any other failure is
    /// the answer, and the folder holds what was measured until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let adapter = find_adapter(&self.adapter).map_err(StudyError::input)?;
        let guests = run.find_guests(&self.options.guest, &[adapter], Extras::default())?;
        let environments = ENVIRONMENTS.map(str::to_owned).to_vec();
        let provenance = self.options.provenance(Plan::NativeVsVm, environments, run)?;
        let mut folder = run.open(provenance)?;
        let measured = self.measure(adapter, &guests, &mut folder, run);
        run.end(folder, measured)
    }

    /// What a run does before its first measurement: both sides have one disk.
    #[must_use]
    pub fn before(&self) -> Before {
        Before { guests: 1, others: 1, disks: 1, idle: 0 }
    }

    fn measure(
        &self,
        adapter: &'static Adapter,
        guests: &Guests,
        folder: &mut RunFolder,
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let (target_dir, run_name) = (self.options.disks_folder(run), run.name());
        let (observer, stop) = (&mut *run.observer, run.stop);
        let disk = StudyDisk::prepare(target_dir, &run_name, self.options.size_bytes, |done, total| {
            observer.event(Event::Making { what: "writing the test disk", done, total });
            !stop.load(Ordering::Relaxed)
        })?;
        let notes = disk.notes().to_vec();
        folder.amend(|provenance| provenance.add_notes(notes))?;
        let [native, vm] = ENVIRONMENTS;
        let guest_disk = GuestDisk::new(adapter, disk.path().to_owned());
        let mut environments: [Box<dyn Environment>; 2] = [
            Box::new(Native::new(native, disk.path().to_owned())),
            guests.vm(vm, guest_disk, None, Vec::new())?,
        ];
        announce(folder, run, self.before());
        measure_points(folder, &mut environments, Course::SIDE_BY_SIDE, run.stop, run.observer)
    }
}
