//! What ends a command about a fence, with its exit code.

use virtbench_fence_daemon::ServeError;
use virtbench_fence_daemon::admin::ResizeError;
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;

use crate::exit::{Failure, Kind};

/// A fence cannot be served or looked at.
pub fn failure(error: ServeError) -> Failure {
    let kind = match &error {
        error if error.is_damage() => Kind::Inconsistent,
        ServeError::Load(_) | ServeError::Config(_) => Kind::Usage,
        ServeError::Device(_)
        | ServeError::Label(_)
        | ServeError::Attach(_)
        | ServeError::Cache { .. }
        | ServeError::Listen(_)
        | ServeError::MemoryLog(_) => Kind::Target,
        ServeError::Nbd(NbdSetupError::Tls(_)) => Kind::Usage,
        ServeError::Nbd(NbdSetupError::Listen(_)) => Kind::Target,
        ServeError::System { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}

/// A fence cannot be changed.
pub fn broken(error: ResizeError) -> Failure {
    let kind = match error {
        ResizeError::Serve(error) => return failure(error),
        ResizeError::NoDisk(_) | ResizeError::Value(_) | ResizeError::Shrinks { .. } => Kind::Usage,
        ResizeError::NoRoom { .. } | ResizeError::Served(_) | ResizeError::NotNow(_) => Kind::Target,
        ResizeError::Damaged { .. } | ResizeError::OfOtherDisks { .. } => Kind::Inconsistent,
        ResizeError::Interrupted => Kind::Interrupted,
    };
    Failure::new(kind, error)
}
