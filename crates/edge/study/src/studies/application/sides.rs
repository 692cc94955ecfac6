//! What a study of an application needs of its sides.

use std::path::Path;

use thiserror::Error;
use virtbench_record::{ApplianceSide, ApplicationMeasured, GuestFacts};

use crate::runner::progress::Progress;
use crate::study_error::StudyError;

/// Why nothing came of a measurement.
#[derive(Debug, Error)]
pub enum ApplicationFailure {
    /// This measurement failed; others may fare better.
    #[error("{why}")]
    Measurement {
        /// What happened.
        why: String,
        /// The end of what the client printed, if it ran.
        output: Option<String>,
    },
    /// The study cannot go on.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl ApplicationFailure {
    pub(super) fn measurement(why: impl Into<String>) -> Self {
        Self::Measurement { why: why.into(), output: None }
    }
}

/// The sides of a study.
pub trait ApplicationSides {
    /// A file or folder on the storage that every side works on.
    fn storage(&self) -> &Path;

    /// Boots a side anew, with so many neighbours beside it, from the bytes that every start begins with, and runs the client.
    /// Returns its result, and the guest that the side is.
    ///
    /// # Errors
    /// An appliance or a client fails, or the study cannot go on.
    fn measure(
        &mut self,
        side: &ApplianceSide,
        neighbours: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(ApplicationMeasured, Option<GuestFacts>), ApplicationFailure>;
}
