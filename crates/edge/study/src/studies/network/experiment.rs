//! The study of the network as a user asks for it.

use virtbench_record::NetworkPlan;

use super::study::NetworkStudy;
use crate::guests::GuestChoice;
use crate::runner::estimate::Estimate;
use crate::runner::experiment::Experiment;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// What a study of the network is asked to do.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// What is measured.
    pub plan: NetworkPlan,
    /// What runs the guests of paths that have some.
    pub guests: GuestChoice,
}

impl Experiment for NetworkOptions {
    const NAME: &'static str = "network";

    fn estimate(&self) -> Estimate {
        NetworkStudy::estimate(&self.plan)
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let needs_guests = self.plan.paths.iter().any(|path| path.has_guest());
        let guests = needs_guests.then(|| self.guests.find((self.plan.vcpus, false), run)).transpose()?;
        NetworkStudy::new(self.plan.clone(), guests).run(run)
    }
}
