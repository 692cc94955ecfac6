//! VMs of a cluster as machines of studies: made of a template, reached by ssh, and removed at the end.

use std::time::Instant;

use virtbench_lab::{Environment, LabError, Machine};
use virtbench_proxmox::Limit;

use super::failure::failure;
use super::guest_address::ProxmoxGuest;
use super::platform::{OnProxmox, ProxmoxOptions};
use crate::failure::Failure;
use crate::platform::{Action, Platform};
use crate::ssh_machine::{MadeOn, MadeVm, READY_WITHIN, not_made, reach};

/// What a clone has is its template's.
const OF_TEMPLATE: ProxmoxOptions = ProxmoxOptions { memory_bytes: 0, disk_bytes: 0 };

/// A machine that is made when it is started.
#[derive(Debug)]
pub struct ProxmoxVm {
    name: String,
    guest: ProxmoxGuest,
    /// Bytes of the test file; none works in the folder itself.
    size_bytes: Option<u64>,
}

impl ProxmoxVm {
    /// One in whose guest a test file of so many bytes is made, or files are kept.
    #[must_use]
    pub fn new(name: &str, guest: ProxmoxGuest, size_bytes: Option<u64>) -> Self {
        Self { name: name.to_owned(), guest, size_bytes }
    }
}

impl ProxmoxGuest {
    /// Makes a VM and waits until its guest tells an address.
    ///
    /// # Errors
    /// The cluster refuses or cannot be reached, or no address is told in time. What was made is removed.
    pub fn make(&self) -> Result<MadeVm, Failure> {
        self.made().map(MadeVm::new)
    }

    fn made(&self) -> Result<(MadeOn<OnProxmox>, String), Failure> {
        let deadline = Instant::now() + READY_WITHIN;
        let made = MadeOn(OnProxmox::connect(&self.platform, OF_TEMPLATE, deadline)?);
        let platform = &made.0;
        let vm = format!("{}-1", platform.label());
        platform.create(&vm, deadline)?;
        platform.perform(&vm, &Action::PowerOn, deadline).result?;
        let limit = Limit::at(deadline);
        let ip = platform.server.guest_address(&platform.place(&vm)?, limit).map_err(failure)?;
        Ok((made, ip))
    }
}

impl Environment for ProxmoxVm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let (made, ip) = self.guest.made().map_err(|error| not_made(&self.name, error.message))?;
        let address = self.guest.login(&ip).map_err(|why| not_made(&self.name, why))?;
        reach(&self.name, made, &address, self.size_bytes)
    }
}
