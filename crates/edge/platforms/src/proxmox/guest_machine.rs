//! VMs of a cluster as machines of studies: made of a template, reached by ssh, and removed at the end.

use std::time::Instant;

use virtbench_lab::SshAddress;
use virtbench_proxmox::Limit;

use super::failure::failure;
use super::guest_address::ProxmoxGuest;
use super::platform::{OnProxmox, ProxmoxOptions};
use crate::failure::Failure;
use crate::platform::{Action, Platform};
use crate::ssh_machine::{MadeOn, MadeVm, READY_WITHIN, VmTemplate};

/// What a clone has is its template's.
const OF_TEMPLATE: ProxmoxOptions = ProxmoxOptions { memory_bytes: 0, disk_bytes: 0 };

impl VmTemplate for ProxmoxGuest {
    fn make(&self) -> Result<MadeVm, Failure> {
        let deadline = Instant::now() + READY_WITHIN;
        let made = MadeOn(OnProxmox::connect(&self.platform, OF_TEMPLATE, deadline)?);
        let platform = &made.0;
        let vm = format!("{}-1", platform.label());
        platform.create(&vm, deadline)?;
        platform.perform(&vm, &Action::PowerOn, deadline).result?;
        let limit = Limit::at(deadline);
        let ip = platform.server.guest_address(&platform.place(&vm)?, limit).map_err(failure)?;
        Ok(MadeVm::new(made, ip))
    }

    fn login(&self, ip: &str) -> Result<SshAddress, String> {
        self.login.at(ip)
    }
}
