//! What a study of an application needs of its sides.

use std::path::Path;

use virtbench_record::{ApplianceSide, ApplicationFailureDetail, ApplicationMeasured, GuestFacts};

use crate::runner::progress::Progress;
use crate::runner::steps::NoResult;

/// Why a measurement of an application has no result.
pub type ApplicationFailure = NoResult<ApplicationFailureDetail>;

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
