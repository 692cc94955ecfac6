//! A connection, as an address asks for it.

use std::sync::Arc;
use std::time::Instant;

use virtbench_proxmox::{Address, Limit, PASSWORD_VARIABLE, Proxmox, Secret};

use super::failure::failure;
use crate::failure::Failure;

/// Connects and logs in.
pub(super) fn open(address: &str, deadline: Instant) -> Result<(Arc<Proxmox>, Address), Failure> {
    let address = Address::parse(address).map_err(failure)?;
    let secret = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE);
    let secret = secret.map_err(|error| failure(error.into()))?;
    let server = Proxmox::connect(&address, secret, Limit::at(deadline)).map_err(failure)?;
    Ok((Arc::new(server), address))
}
