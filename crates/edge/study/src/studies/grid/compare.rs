//! The same load on environments of whatever kind.

use virtbench_record::{ComparePlan, Plan};

use super::options::{Before, GridOptions, announce};
use crate::environments::{EnvironmentUri, FoundEnvironments, NamedEnvironment};
use crate::runner::course::Course;
use crate::runner::estimate::Estimate;
use crate::runner::event::Event;
use crate::runner::run::{Run, RunEnd};
use crate::studies::grid::points::measure_points;
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

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
