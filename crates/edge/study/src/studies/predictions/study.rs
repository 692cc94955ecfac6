//! The study of predictions: applications profiled natively, predicted, and only then run in a VM.

use virtbench_model::predict::PredictionMethod;
use virtbench_record::{Costs, Plan, PredictionsPlan, Trial};

use super::cases::Cases;
use super::error::ApplicationsError;
use super::options::VmOptions;
use super::run::{missing_trials, run_predictions};
use super::trials::HostAndVm;
use crate::runner::estimate::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

/// A study of how well predictions hold.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// The applications.
    pub cases: Cases,
    /// Trials of each.
    pub trials: u32,
    /// Runs on each side in a trial, of which the middle one counts.
    pub runs: u32,
    /// How everything is predicted; the best method for which there is enough where nothing is said.
    pub method: Option<PredictionMethod>,
    /// The VM.
    pub vm: VmOptions,
    /// What work costs, where that was measured before.
    pub costs: Option<Costs>,
}

impl Predictions {
    /// How many trials there are. An application takes as long as it takes, so nobody knows how long they are.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let measurements = self.cases.cases.len().saturating_mul(self.trials as usize);
        let first = self.costs.is_none().then(|| "what pieces of work cost".to_owned());
        Estimate {
            measurements,
            machines: None,
            total_ns: None,
            moments_ns: None,
            is_bound: false,
            besides: first,
        }
    }

    /// Tries whatever is missing in the run folder.
    ///
    /// # Errors
    /// The study is impossible, the host lacks something, or it failed before anything was tried. Any other failure is the
    /// answer, and the folder holds what was tried until then.
    pub fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let provenance = run.provenance(Plan::Predictions(self.plan()), &self.vm.folder);
        let mut folder: RunFolder<Trial> = run.open(provenance)?;
        if missing_trials(folder.provenance(), folder.records()).is_empty() {
            return Ok(Ok(()));
        }
        let measured = self.measure(&mut folder, run).map_err(StudyError::from);
        run.end(folder, measured)
    }

    fn measure(&self, folder: &mut RunFolder<Trial>, run: &mut Run<'_>) -> Result<(), ApplicationsError> {
        let progress = &mut Progress { stop: run.stop, observer: run.observer };
        let mut sides = HostAndVm::new(self.vm.clone(), progress)?;
        run_predictions(folder, &mut sides, self.costs.as_ref(), progress)
    }

    fn plan(&self) -> PredictionsPlan {
        let VmOptions { guest, disk_bytes, adapter, filesystem, limit_ns, .. } = &self.vm;
        PredictionsPlan {
            set: self.cases.set,
            cases: self.cases.cases.clone(),
            trials: self.trials,
            runs: self.runs,
            method: self.method.map(|method| method.name().to_owned()),
            vcpus: guest.vcpus,
            memory_bytes: guest.memory_bytes,
            adapter: adapter.clone(),
            size_bytes: *disk_bytes,
            filesystem: filesystem.clone(),
            accelerator: guest.accelerator.name().to_owned(),
            limit_ns: *limit_ns,
        }
    }
}
