//! A study as a user asks for it: options in, a run folder out.

use crate::runner::estimate::Estimate;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;

/// The options of a study. The command reads them from its arguments; from Rust they are written down.
pub trait Experiment {
    /// The study's name on the command line.
    const NAME: &'static str;

    /// What is measured, and about how long that takes. Nothing is looked for.
    fn estimate(&self) -> Estimate;

    /// Finds and builds what the study needs, and measures what is missing in the run folder.
    ///
    /// # Errors
    /// Something is missing or impossible, or it failed before anything was measured. Any other failure is the answer, and the folder
    /// holds what was measured until then.
    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError>;
}
