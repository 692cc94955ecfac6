//! Servers of a cloud as machines of studies: made of an image, reached by ssh, and removed at the end.

use std::time::Instant;

use virtbench_lab::{Environment, LabError, Machine};
use virtbench_openstack::Limit;
use virtbench_record::FailureKind;

use super::failure::failure;
use super::guest_address::OpenStackGuest;
use super::platform::OnOpenStack;
use crate::failure::Failure;
use crate::platform::Platform;
use crate::ssh_machine::{MadeOn, MadeVm, READY_WITHIN, not_made, reach};

/// The network where the address names none: the project's own.
const NETWORK: &str = "auto";

/// A machine that is made when it is started.
#[derive(Debug)]
pub struct OpenStackVm {
    name: String,
    guest: OpenStackGuest,
    /// Bytes of the test file; none works in the folder itself.
    size_bytes: Option<u64>,
}

impl OpenStackVm {
    /// One in whose guest a test file of so many bytes is made, or files are kept.
    #[must_use]
    pub fn new(name: &str, guest: OpenStackGuest, size_bytes: Option<u64>) -> Self {
        Self { name: name.to_owned(), guest, size_bytes }
    }
}

impl OpenStackGuest {
    /// Makes a server and waits until it is active and has an address.
    ///
    /// # Errors
    /// The cloud refuses or cannot be reached, or the server has no address. What was made is removed.
    pub fn make(&self) -> Result<MadeVm, Failure> {
        self.made().map(MadeVm::new)
    }

    fn made(&self) -> Result<(MadeOn<OnOpenStack>, String), Failure> {
        let deadline = Instant::now() + READY_WITHIN;
        let made = MadeOn(OnOpenStack::connect(&self.platform, NETWORK, deadline)?);
        let platform = &made.0;
        let vm = format!("{}-1", platform.label());
        platform.boot(&vm, deadline)?;
        let server = platform.cloud.server(&platform.id(&vm)?, Limit::at(deadline)).map_err(failure)?;
        let ip = server.as_ref().and_then(|server| server.outer_address()).map(str::to_owned);
        let none = || {
            Failure::new(FailureKind::NotSeen, "the server has no address: name another network by network=")
        };
        let ip = ip.ok_or_else(none)?;
        Ok((made, ip))
    }
}

impl Environment for OpenStackVm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let (made, ip) = self.guest.made().map_err(|error| not_made(&self.name, error.message))?;
        let address = self.guest.login(&ip).map_err(|why| not_made(&self.name, why))?;
        reach(&self.name, made, &address, self.size_bytes)
    }
}
