//! VMs of a cluster as machines of studies: made of a template, reached by ssh, and removed at the end.

use std::fmt;
use std::time::Instant;

use virtbench_lab::SshAddress;
use virtbench_proxmox::{Address, Limit};

use super::failure::failure;
use super::platform::{OnProxmox, ProxmoxOptions};
use crate::platform::{Action, Failure, Platform};
use crate::ssh_machine::{GuestLogin, MadeOn, MadeVm, READY_WITHIN, VmTemplate};

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

/// Where a VM is made, and how its guest is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxmoxGuest {
    /// The address without what is for the login.
    pub(super) platform: String,
    server: Address,
    pub(super) login: GuestLogin,
}

impl ProxmoxGuest {
    /// How every such address begins.
    pub const PREFIX: &str = Address::PREFIX;

    /// Reads `proxmox:[USER@REALM@]HOST?template=T[&node=...]`, with `ssh-user=`, `ssh-port=`, `ssh-folder=` and `ssh-config=` for the
    /// guest.
    ///
    /// # Errors
    /// It is no such address, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (login, platform) = GuestLogin::take_from(text)?;
        let address = Address::parse(&platform).map_err(|error| error.to_string())?;
        if address.template.is_none() {
            return Err(format!(
                "{address}: of which template is a VM made? Add ?template=NUMBER|NAME: its guest needs an ssh server that lets your key \
                 in, and the agent of QEMU, which tells its address"
            ));
        }
        Ok(Self { platform, server: address, login })
    }

    /// The server's name.
    #[must_use]
    pub fn host(&self) -> &str {
        self.server.host.rsplit_once(':').map_or(&self.server.host, |(host, _)| host)
    }
}

/// Neither a password's file nor whom to trust is shown.
impl fmt::Display for ProxmoxGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?template={}", self.server, self.server.template.as_deref().unwrap_or_default())?;
        self.server.node.as_ref().map_or(Ok(()), |node| write!(f, "&node={node}"))?;
        self.server.storage.as_ref().map_or(Ok(()), |storage| write!(f, "&storage={storage}"))?;
        write!(f, "&ssh-folder={}", self.login.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_of_proxmox_is_a_template_and_a_login() {
        let text = "proxmox:pve1?template=golden&ssh-user=root&node=pve2&ssh-port=2222&ssh-folder=/srv/b&password-file=/k&verify=no";
        let guest = ProxmoxGuest::parse(text).unwrap();
        assert_eq!(guest.platform, "proxmox:pve1?template=golden&node=pve2&password-file=/k&verify=no");
        assert_eq!(
            guest.to_string(),
            "proxmox:root@pam@pve1:8006?template=golden&node=pve2&ssh-folder=/srv/b"
        );
        assert_eq!(guest.login.at("10.0.0.7").unwrap().to_string(), "ssh://root@10.0.0.7:2222/srv/b");
        assert!(guest.login.at("fe80::1").unwrap().to_string().contains("[fe80::1]:2222"));
        assert_eq!(guest.host(), "pve1");
    }

    #[test]
    fn what_is_no_machine_of_proxmox_is_refused_before_a_vm_is_made() {
        for (text, word) in [
            ("proxmox:pve1", "Add ?template="),
            ("proxmox:pve1?template=t&ssh-port=x", "no such port"),
            ("proxmox:pve1?template=t&ssh-folder=relative", "ssh-folder=/FOLDER"),
            ("proxmox:pve1?template=t&ssh-key=x", "ssh-config=FILE"),
            ("proxmox:pve1?template=t&disk=nvme", "no option"),
            ("proxmox:pve1?template=t&ssh-user=a:b", "password does not belong"),
        ] {
            let error = ProxmoxGuest::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
