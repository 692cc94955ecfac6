//! Where an appliance of a study runs, and how clients reach it.

use std::time::Duration;

use virtbench_lab::{ApplianceError, Network, NetworkNamespace, Place};
use virtbench_record::ApplianceSide;

use crate::guests::ApplianceGuests;
use crate::study_error::StudyError;

/// How long a guest may take to boot.
const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// Whether this host lets appliances run natively: said before anything is built for them.
///
/// # Errors
/// It lacks the rights.
pub fn check_native() -> Result<(), StudyError> {
    NetworkNamespace::new().map(drop).map_err(|error| {
        StudyError::Environment(format!("an appliance cannot run natively here: {error}").into())
    })
}

/// Where a side runs.
///
/// # Errors
/// It is a VM, and nothing was looked for that could boot it.
pub(crate) fn place(guests: Option<&ApplianceGuests>, side: &ApplianceSide) -> Result<Place, StudyError> {
    if !side.vm {
        return Ok(Place::Native);
    }
    let missing = || StudyError::input(format!("nothing was found to boot {}: a defect", side.name));
    Ok(guests.ok_or_else(missing)?.place(BOOT_LIMIT))
}

/// The network of a plan: `tap`, or `user`.
///
/// # Errors
/// There can be no network namespace.
pub(crate) fn network(name: &str) -> Result<Network, ApplianceError> {
    match name {
        "tap" => Ok(Network::Namespace(NetworkNamespace::new()?)),
        _ => Ok(Network::User),
    }
}
