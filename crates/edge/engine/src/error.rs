//! Why a load could not be applied.

use std::io;

use thiserror::Error;
use virtbench_workload::LoadError;

use crate::verify::LedgerError;

/// Why a load could not be applied. Operations that fail are not among them: they are counted.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The load makes no sense.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The load does not fit the target.
    #[error("{0}")]
    Misfit(String),
    /// The ledger of what was written cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The kernel refused a resource.
    #[error("{what}: {source}")]
    Resource {
        /// What was asked for.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

pub(crate) fn resource(what: &str, source: io::Error) -> EngineError {
    EngineError::Resource { what: what.to_owned(), source }
}
