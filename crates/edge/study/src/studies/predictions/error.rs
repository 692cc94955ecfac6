//! What can go wrong when applications are measured.

use thiserror::Error;
use virtbench_lab::{CommandError, LabError};

use crate::guests::GuestsError;
use crate::runner::progress::Stopped;
use virtbench_runs::FolderError;

/// A cause that is told in words.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why applications could not be measured or predicted.
#[derive(Debug, Error)]
pub enum ApplicationsError {
    /// What was asked for is impossible.
    #[error("{0}")]
    Input(Cause),
    /// An application, or a file that it needs, cannot be used.
    #[error("{0}")]
    Target(Cause),
    /// The host lacks something.
    #[error("{0}")]
    Environment(Cause),
    /// It was measured, and what came of it is no result.
    #[error("{0}")]
    Measured(Cause),
    /// A guest failed, or the agent on this host.
    #[error(transparent)]
    Machine(LabError),
    /// What guests need is missing.
    #[error(transparent)]
    Guests(#[from] GuestsError),
    /// The run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It was asked to stop.
    #[error("stopped before everything was measured; nothing incomplete was written")]
    Stopped,
}

impl ApplicationsError {
    /// Whether other applications may fare better: the host, the folder and the user are not in the way.
    pub(crate) fn is_of_one_application(&self) -> bool {
        match self {
            Self::Stopped | Self::Folder(_) | Self::Guests(_) | Self::Environment(_) => false,
            Self::Input(_) | Self::Target(_) | Self::Measured(_) | Self::Machine(_) => true,
        }
    }
}

impl From<LabError> for ApplicationsError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Stopped => Self::Stopped,
            error => Self::Machine(error),
        }
    }
}

impl From<CommandError> for ApplicationsError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Stopped { .. } => Self::Stopped,
            error => Self::Target(error.into()),
        }
    }
}

impl From<Stopped> for ApplicationsError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
