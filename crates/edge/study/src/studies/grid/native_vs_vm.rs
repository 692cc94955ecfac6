//! The same load natively and in a VM ([ESX Disk 2003], section 3).

use std::sync::atomic::Ordering;

use virtbench_lab::{Adapter, Environment, GuestDisk, Native, find_adapter};
use virtbench_record::Plan;

use super::options::{Before, Compare, GridOptions, announce};
use crate::disks::disk::StudyDisk;
use crate::environments::{NamedEnvironment, NamesError, find_environments};
use crate::guests::{Extras, GuestOptions, Guests, GuestsError, ONLY_GUEST, WantedAccelerator};
use crate::runner::event::{Estimate, Event};
use crate::runner::progress::Course;
use crate::runner::run::{Run, RunEnd};
use crate::studies::grid::points::measure_points;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// Name of the reference.
const NATIVE: &str = "native";

/// What stands for this host where no machine is named.
const THIS_HOST: &str = "native:";

/// The same load on a machine and on a VM, wherever both are.
#[derive(Debug, Clone)]
pub enum MachineAndVm {
    /// On one disk of this host, with a VM that is booted for it.
    Here(NativeVsVm),
    /// On machines that are named.
    Named(Compare),
}

impl MachineAndVm {
    /// On machines that are named: this host where only the VM is.
    ///
    /// # Errors
    /// One is no environment, or the file of names cannot be read.
    pub fn named(options: GridOptions, native: Option<&str>, vm: &str) -> Result<Self, NamesError> {
        let sides = find_environments(&[native.unwrap_or(THIS_HOST).to_owned(), vm.to_owned()])?;
        let names = [NATIVE, ONLY_GUEST].map(str::to_owned).into_iter();
        let environments = names.zip(sides).map(|(name, side)| NamedEnvironment { name, ..side }).collect();
        Ok(Self::Named(Compare { options, environments }))
    }

    /// What is to be measured, and about how long that takes.
    ///
    /// # Errors
    /// The study is impossible.
    pub fn estimate(&self) -> Result<Estimate, StudyError> {
        match self {
            Self::Here(study) => study.estimate(),
            Self::Named(study) => study.estimate(),
        }
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// As [`NativeVsVm::run`] and [`Compare::run`].
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        match self {
            Self::Here(study) => study.run(run),
            Self::Named(study) => study.run(run),
        }
    }
}

/// A study of one disk, natively and in a VM: of each platform that says something here, where none is named.
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
        let guests = self.find_guests(adapter, run)?;
        let names = guests.iter().map(|(name, _)| *name);
        let environments = std::iter::once(NATIVE).chain(names).map(str::to_owned).collect();
        let provenance = self.options.provenance(Plan::NativeVsVm, environments, run)?;
        let mut folder = run.open(provenance)?;
        let measured = self.measure(adapter, &guests, &mut folder, run);
        run.end(folder, measured)
    }

    /// What is to be measured, and about how long that takes.
    ///
    /// # Errors
    /// The study is impossible.
    pub fn estimate(&self) -> Result<Estimate, StudyError> {
        let guests = Guests::platforms_expected(&self.options.guest);
        self.options.estimate(guests + 1, Self::before(guests))
    }

    /// What a run with so many guests does before its first measurement: all sides have one disk.
    fn before(guests: usize) -> Before {
        Before { guests, others: 1, disks: 1, idle: 0 }
    }

    /// The platforms, those of the run that is resumed where one is.
    fn find_guests(
        &self,
        adapter: &'static Adapter,
        run: &mut Run<'_>,
    ) -> Result<Vec<(&'static str, Guests)>, GuestsError> {
        let (guest, begun) = (&self.options.guest, run.begun());
        let only = begun.filter(|begun| begun.plan.environments().len() == 2).and_then(|begun| begun.guest);
        let remark = &mut |what: &str| run.remark(what);
        match only {
            Some(only) => {
                let accelerator =
                    WantedAccelerator::find(&only.accelerator.name).unwrap_or(guest.accelerator);
                let options = GuestOptions { accelerator, ..guest.clone() };
                Ok(vec![(ONLY_GUEST, Guests::find(&options, &[adapter], Extras::default(), remark)?)])
            }
            None => Guests::platforms(guest, &[adapter], Extras::default(), remark),
        }
    }

    fn measure(
        &self,
        adapter: &'static Adapter,
        guests: &[(&str, Guests)],
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
        let native: Box<dyn Environment> = Box::new(Native::new(NATIVE, disk.path().to_owned()));
        let mut environments = vec![native];
        for (name, guests) in guests {
            let guest_disk = GuestDisk::new(adapter, disk.path().to_owned());
            environments.push(guests.vm(name, guest_disk, None, Vec::new())?);
        }
        announce(folder, run, Self::before(guests.len()));
        measure_points(folder, &mut environments, Course::SIDE_BY_SIDE, run.stop, run.observer)
    }
}
