//! A connection, as an address asks for it.

use std::sync::Arc;
use std::time::Instant;

use virtbench_vsphere::{Address, PASSWORD_VARIABLE, Secret, Vsphere};

use super::done::failure;
use crate::failure::Failure;

/// Connects and logs in.
pub(super) fn open(address: &str, deadline: Instant) -> Result<(Arc<Vsphere>, Address), Failure> {
    let address = Address::parse(address).map_err(failure)?;
    let password = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE);
    let password = password.map_err(|error| failure(error.into()))?;
    let server = Vsphere::connect(&address, password, deadline).map_err(failure)?;
    Ok((Arc::new(server), address))
}
