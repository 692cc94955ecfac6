//! Exit codes of what can go wrong with appliances.

use virtbench_appliance::{ApplianceError, ErrorKind};

use crate::exit::{Failure, Kind};

/// What kind of failure it is.
pub fn appliance_kind(error: &ApplianceError) -> Kind {
    match error.kind() {
        ErrorKind::Asked => Kind::Usage,
        ErrorKind::Host => Kind::Environment,
        ErrorKind::Storage => Kind::Target,
        ErrorKind::Stopped => Kind::Interrupted,
        ErrorKind::Other => Kind::Other,
    }
}

/// A failure with its exit code.
pub fn failure(error: ApplianceError) -> Failure {
    Failure::new(appliance_kind(&error), error)
}
