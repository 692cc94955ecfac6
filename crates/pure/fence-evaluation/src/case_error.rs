//! Why an experiment gives no figures.

use thiserror::Error;

use virtbench_fence_sim::WorldError;

/// An experiment that cannot be, or that broke.
#[derive(Debug, Error, PartialEq)]
pub enum CaseError {
    /// The world cannot be, or broke.
    #[error("{case}: {error}")]
    World {
        /// Which experiment.
        case: String,
        /// What was wrong.
        #[source]
        error: WorldError,
    },
    /// A machine did nothing.
    #[error("{0}: a machine completed nothing in the measured span: give `measure_s` more time")]
    Nothing(String),
}
