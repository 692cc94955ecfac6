//! What guests need, as failures of a command.

use virtbench_study::GuestsError;

use crate::exit::{Failure, Kind};

/// The failure of a command that can have no guests.
pub fn guests_failure(error: GuestsError) -> Failure {
    Failure::new(guests_kind(&error), error)
}

/// Its kind.
pub fn guests_kind(error: &GuestsError) -> Kind {
    if matches!(error, GuestsError::NoImage(_)) { Kind::Other } else { Kind::Environment }
}
