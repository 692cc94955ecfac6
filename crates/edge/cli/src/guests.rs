//! What guests need, as failures of a command.

use virtbench_study::GuestsError;

use crate::exit::Kind;

/// The kind of failure of a command that can have no guests.
pub fn guests_kind(error: &GuestsError) -> Kind {
    if matches!(error, GuestsError::NoImage(_)) { Kind::Other } else { Kind::Environment }
}
