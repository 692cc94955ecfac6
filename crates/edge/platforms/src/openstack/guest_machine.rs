//! Servers of a cloud as machines of studies: made of an image, reached by ssh, and removed at the end.

use std::time::Instant;

use virtbench_lab::SshAddress;
use virtbench_openstack::Limit;
use virtbench_record::FailureKind;

use super::failure::failure;
use super::guest_address::OpenStackGuest;
use super::platform::OnOpenStack;
use crate::failure::Failure;
use crate::platform::Platform;
use crate::ssh_machine::{MadeOn, MadeVm, READY_WITHIN, VmTemplate};

/// The network where the address names none: the project's own.
const NETWORK: &str = "auto";

impl VmTemplate for OpenStackGuest {
    fn make(&self) -> Result<MadeVm, Failure> {
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
        Ok(MadeVm::new(made, ip))
    }

    fn login(&self, ip: &str) -> Result<SshAddress, String> {
        self.login.at(ip)
    }
}
