//! Why a study ended before its time.

use thiserror::Error;
use virtbench_lab::LabError;

use crate::folder::FolderError;

/// A study that ended before its time. What was measured is in its folder.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A machine or the host failed.
    #[error(transparent)]
    Lab(#[from] LabError),
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
    /// A set has a workload that there is not: a defect.
    #[error("the plan names workload {0}, which there is not: a defect of virtbench")]
    NoWorkload(usize),
    /// A share is asked for of a saturation that was not found.
    #[error("the saturation of {workload} was not found, so that a share of it means nothing: {why}")]
    NoSaturation {
        /// The workload.
        workload: String,
        /// What became of the first machine that was to find it.
        why: String,
    },
    /// A share is asked for of a workload that cannot be held to a rate.
    #[error(
        "{workload} cannot run at a share of its saturation: --pattern needs a load, fileserver, mailserver, \
         webserver, a model or dbench"
    )]
    NoRate {
        /// The workload.
        workload: String,
    },
    /// Guests were lost again and again.
    #[error("{0} guests were lost: this host does not keep them up; results until here are kept")]
    TooManyLost(usize),
    /// It was asked to stop.
    #[error("stopped; --resume goes on with the missing points")]
    Stopped,
}
