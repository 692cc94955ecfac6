//! Why a study ended before its time.

use thiserror::Error;
use virtbench_lab::LabError;

use crate::disks::disk::DiskError;
use crate::disks::images::ImagesError;
use crate::guests::GuestsError;
use crate::runner::progress::Stopped;
use crate::studies::colocation::JobsError;
#[cfg(feature = "full")]
use crate::studies::predictions::ApplicationsError;
use virtbench_runs::FolderError;

/// A cause that is told in words.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A study that ended before its time. What was measured is in its folder.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A machine or the host failed.
    #[error(transparent)]
    Lab(LabError),
    /// The folder failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The target stopped working.
    #[error("{environment}: operations on the test disk failed: {why}")]
    Target {
        /// The environment whose disk it is.
        environment: String,
        /// What failed.
        why: String,
    },
    /// A set has a machine that there is not: a defect.
    #[error("the plan names {0}, which there is not: a defect of virtbench")]
    NoMachine(String),
    /// A machine of a set has nothing to do.
    #[error(transparent)]
    Jobs(#[from] JobsError),
    /// What was asked for is impossible.
    #[error("{0}")]
    Input(Cause),
    /// The host lacks something.
    #[error("{0}")]
    Environment(Cause),
    /// An application could not be measured or predicted.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Applications(ApplicationsError),
    /// An appliance cannot be built, or its data cannot be prepared.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Appliance(virtbench_appliance::ApplianceError),
    /// An appliance that was started to be tried does not get ready, or has ended.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Started(virtbench_lab::ApplianceError),
    /// A platform cannot be used.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Platform(#[from] virtbench_platforms::Failure),
    /// What guests need is missing.
    #[error(transparent)]
    Guests(#[from] GuestsError),
    /// The test disks cannot be made.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// Guests were lost again and again.
    #[error("{0} guests were lost: this host does not keep them up; results until here are kept")]
    TooManyLost(usize),
    /// It was asked to stop.
    #[error("stopped; --resume goes on with the missing points")]
    Stopped,
}

impl StudyError {
    /// Something impossible that was asked for.
    pub(crate) fn input(why: impl Into<Cause>) -> Self {
        Self::Input(why.into())
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Images(error) => error.is_stopped(),
            _ => false,
        }
    }

    /// Whether this host lacks what is needed, which no other run on it would have either.
    #[must_use]
    pub fn lacks_something(&self) -> bool {
        match self {
            Self::Environment(_) => true,
            Self::Guests(error) => !matches!(error, GuestsError::NoImage(_)),
            Self::Images(error) => error.lacks_something(),
            _ => false,
        }
    }
}

impl From<Stopped> for StudyError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<LabError> for StudyError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Stopped => Self::Stopped,
            error => Self::Lab(error),
        }
    }
}

#[cfg(feature = "full")]
impl From<ApplicationsError> for StudyError {
    fn from(error: ApplicationsError) -> Self {
        match error {
            ApplicationsError::Stopped => Self::Stopped,
            ApplicationsError::Folder(error) => Self::Folder(error),
            ApplicationsError::Guests(error) => Self::Guests(error),
            error => Self::Applications(error),
        }
    }
}

#[cfg(feature = "full")]
impl From<virtbench_appliance::ApplianceError> for StudyError {
    fn from(error: virtbench_appliance::ApplianceError) -> Self {
        match error.kind() {
            virtbench_appliance::ErrorKind::Stopped => Self::Stopped,
            _ => Self::Appliance(error),
        }
    }
}

impl From<DiskError> for StudyError {
    fn from(error: DiskError) -> Self {
        Self::Images(error.into())
    }
}
