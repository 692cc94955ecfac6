//! What one machine is to do: a load on a target, or a classic workload.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::classic::{WorkloadError, WorkloadSpec};
use crate::load::LoadSpec;
use crate::load_error::LoadError;

/// What one machine is to do. Jobs of both kinds can run at one moment on several machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobSpec {
    /// An Iometer-style load.
    Load(LoadSpec),
    /// A classic workload.
    Workload(WorkloadSpec),
}

/// A job that makes no sense.
#[derive(Debug, Error, PartialEq)]
pub enum JobError {
    /// The load is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The workload is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

impl JobSpec {
    /// Time before measuring begins, in nanoseconds.
    #[must_use]
    pub fn ramp_ns(&self) -> u64 {
        match self {
            Self::Load(load) => load.ramp_ns,
            Self::Workload(workload) => workload.ramp_ns,
        }
    }

    /// The longest that it may take until measuring begins, in nanoseconds.
    #[must_use]
    pub fn longest_before_ns(&self) -> u64 {
        match self {
            Self::Load(load) => load.ramp_ns,
            Self::Workload(workload) => workload.longest_before_ns(),
        }
    }

    /// The longest that measuring may take, in nanoseconds. A load takes just as long.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Load(load) => load.time_ns,
            Self::Workload(workload) => workload.longest_ns(),
        }
    }

    /// How long measuring is likely to take, in nanoseconds.
    #[must_use]
    pub fn expected_ns(&self) -> u64 {
        match self {
            Self::Load(load) => load.time_ns,
            Self::Workload(workload) => workload.expected_ns(),
        }
    }

    /// How long measuring takes, in nanoseconds, where that is known beforehand.
    #[must_use]
    pub fn fixed_time_ns(&self) -> Option<u64> {
        match self {
            Self::Load(load) => Some(load.time_ns),
            Self::Workload(workload) => workload.time_ns,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first thing found wrong, naming what to change.
    pub fn validate(&self) -> Result<(), JobError> {
        match self {
            Self::Load(load) => Ok(load.validate()?),
            Self::Workload(workload) => Ok(workload.validate()?),
        }
    }
}

impl From<LoadSpec> for JobSpec {
    fn from(load: LoadSpec) -> Self {
        Self::Load(load)
    }
}

impl From<WorkloadSpec> for JobSpec {
    fn from(workload: WorkloadSpec) -> Self {
        Self::Workload(workload)
    }
}
