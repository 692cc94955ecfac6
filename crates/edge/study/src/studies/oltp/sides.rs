//! What a study needs of its sides.

use std::path::Path;

use virtbench_record::{ApplianceSide, GuestFacts, OltpFailureDetail, OltpMeasured};

use crate::runner::progress::Progress;
use crate::runner::steps::NoResult;

/// A load for one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OltpLoad {
    /// Users.
    pub users: u32,
    /// Before measuring, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of measuring, in nanoseconds.
    pub time_ns: u64,
    /// Seed of what users do.
    pub seed: u64,
}

/// Why a measurement of a database has no result.
pub type OltpFailure = NoResult<OltpFailureDetail>;

/// The sides of a study.
pub trait OltpSides {
    /// A file or folder on the storage that every side works on.
    fn storage(&self) -> &Path;

    /// Starts a side anew, from the bytes that every start begins with.
    ///
    /// # Errors
    /// It does not get ready, or the study cannot go on.
    fn boot(
        &mut self,
        side: &ApplianceSide,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn OltpBoot + '_>, OltpFailure>;
}

/// A side that runs. Dropping it ends it.
pub trait OltpBoot {
    /// Applies a load, and checks afterwards that the database is consistent.
    ///
    /// # Errors
    /// The side failed under it or is not consistent, or the study cannot go on.
    fn measure(&mut self, load: OltpLoad, progress: &mut Progress<'_>) -> Result<OltpMeasured, OltpFailure>;

    /// The guest that it is; nothing natively.
    fn guest(&self) -> Option<GuestFacts>;
}
