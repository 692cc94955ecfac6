//! The same load on environments of whatever kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use virtbench_lab::{Environment, Native, Ssh};
use virtbench_record::{ComparePlan, Plan};

use super::options::{GridOptions, announce};
use crate::contents::Contents;
use crate::course::Course;
use crate::environments::{EnvironmentUri, NamedEnvironment, QemuUri};
use crate::event::Event;
use crate::folder::RunFolder;
use crate::guests::{Extras, Guests};
use crate::images::Images;
use crate::points::measure_points;
use crate::prerequisites::check_tools;
use crate::run::{Run, RunEnd};
use crate::setup::Setup;
use crate::study_error::StudyError;

/// A study of environments.
#[derive(Debug, Clone)]
pub struct Compare {
    /// The points, how each is measured, and what guests are made of that do not say so themselves.
    pub options: GridOptions,
    /// The environments, the reference first.
    pub environments: Vec<NamedEnvironment>,
}

impl Compare {
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
        let setups: Vec<Setup> = self.guests().map(|qemu| qemu.setup.clone()).collect();
        check_tools(&setups)?;
        let guests = self.guests().map(|qemu| {
            let guest = qemu.guest(&self.options.guest);
            run.find_guests(&guest, &[qemu.setup.adapter], Extras::default())
        });
        let guests: Vec<Guests> = guests.collect::<Result<_, _>>()?;
        let mut folder = run.open(provenance)?;
        let measured = self.measure(&guests, &mut folder, run);
        run.end(folder, measured)
    }

    fn guests(&self) -> impl Iterator<Item = &QemuUri> {
        self.environments.iter().filter_map(|environment| match &environment.uri {
            EnvironmentUri::Qemu(qemu) => Some(&**qemu),
            EnvironmentUri::Native { .. } | EnvironmentUri::Ssh(_) => None,
        })
    }

    fn measure(
        &self,
        guests: &[Guests],
        folder: &mut RunFolder,
        run: &mut Run<'_>,
    ) -> Result<(), StudyError> {
        let disks = self.local_disks(run)?;
        let notes: Vec<String> = disks.values().flat_map(|images| images.notes().to_vec()).collect();
        folder.amend(|provenance| provenance.add_notes(notes))?;
        let mut guests = guests.iter();
        // The next disk of each folder: they were made in the environments' order.
        let mut taken: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut environments: Vec<Box<dyn Environment>> = Vec::new();
        for NamedEnvironment { name, uri } in &self.environments {
            let missing = || StudyError::NoMachine(name.clone());
            environments.push(match uri {
                EnvironmentUri::Ssh(address) => {
                    Box::new(Ssh::new(name, address.clone(), self.options.size_bytes))
                }
                EnvironmentUri::Native { folder } => {
                    let images = disks.get(self.disks_folder(folder.as_ref(), run)).ok_or_else(missing)?;
                    Box::new(Native::new(name, images.raw().to_owned()))
                }
                EnvironmentUri::Qemu(qemu) => {
                    let place = self.disks_folder(qemu.folder.as_ref(), run);
                    let index = taken.entry(place).or_default();
                    let disk = disks.get(place).and_then(|images| images.disks().get(*index));
                    *index += 1;
                    let ((disk, _), guests) = disk.zip(guests.next()).ok_or_else(missing)?;
                    guests.vm(name, disk.clone(), None, Vec::new())?
                }
            });
        }
        announce(folder, run);
        measure_points(folder, &mut environments, Course::SIDE_BY_SIDE, run.stop, run.observer)
    }

    /// The disks of this host's environments, by their folder: a file that all of a folder have in common, and what single
    /// guests have beside.
    fn local_disks(&self, run: &mut Run<'_>) -> Result<BTreeMap<PathBuf, Images>, StudyError> {
        let mut setups: BTreeMap<PathBuf, Vec<Setup>> = BTreeMap::new();
        for environment in &self.environments {
            let (folder, setup) = match &environment.uri {
                EnvironmentUri::Native { folder } => (folder.as_ref(), None),
                EnvironmentUri::Qemu(qemu) => (qemu.folder.as_ref(), Some(qemu.setup.clone())),
                EnvironmentUri::Ssh(_) => continue,
            };
            setups.entry(self.disks_folder(folder, run).to_owned()).or_default().extend(setup);
        }
        let run_name = run.name();
        let mut disks = BTreeMap::new();
        for (folder, setups) in setups {
            let observer = &mut *run.observer;
            let mut on_progress =
                |what: &str, done, total| observer.event(Event::Making { what, done, total });
            let (size_bytes, stop) = (self.options.size_bytes, run.stop);
            let images = Images::prepare(
                &folder,
                &run_name,
                &setups,
                size_bytes,
                Contents::Written,
                stop,
                &mut on_progress,
            )?;
            disks.insert(folder, images);
        }
        Ok(disks)
    }

    fn disks_folder<'f, 'a: 'f>(&'f self, own: Option<&'f PathBuf>, run: &Run<'a>) -> &'f Path {
        own.map_or_else(|| self.options.disks_folder(run), PathBuf::as_path)
    }
}
