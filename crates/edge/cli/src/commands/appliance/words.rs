//! Sizes and failures as they are told.

use virtbench_appliance::{ApplianceError, ErrorKind};

use crate::exit::{Failure, Kind};

/// So many bytes, as a person reads them.
pub fn on_disk(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A failure with its exit code.
pub fn failure(error: ApplianceError) -> Failure {
    let kind = match error.kind() {
        ErrorKind::Asked => Kind::Usage,
        ErrorKind::Host => Kind::Environment,
        ErrorKind::Storage => Kind::Target,
        ErrorKind::Stopped => Kind::Interrupted,
        ErrorKind::Other => Kind::Other,
    };
    Failure::new(kind, error)
}
