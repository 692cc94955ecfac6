//! The exit code of a load that could not be applied.

use virtbench_engine::EngineError;

use crate::exit::{Failure, Kind};

/// The failure with its exit code.
pub fn refusal(error: EngineError) -> Failure {
    let kind = match error {
        EngineError::Load(_) => Kind::Usage,
        EngineError::Misfit(_) | EngineError::Ledger(_) => Kind::Target,
        EngineError::Resource { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}
