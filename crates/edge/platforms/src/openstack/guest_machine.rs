//! Servers of a cloud as machines of studies: made of an image, reached by ssh, and removed at the end.

use std::fmt;
use std::time::Instant;

use virtbench_lab::SshAddress;
use virtbench_openstack::{Address, Limit};
use virtbench_record::FailureKind;

use super::owned::failure;
use super::platform::OnOpenStack;
use crate::platform::{Failure, Platform};
use crate::ssh_machine::{GuestLogin, MadeOn, MadeVm, READY_WITHIN, VmTemplate};

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

/// Where a server is made, and how its guest is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenStackGuest {
    /// The address without what is for the login.
    pub(super) platform: String,
    cloud: Address,
    pub(super) login: GuestLogin,
}

impl OpenStackGuest {
    /// How every such address begins.
    pub const PREFIX: &str = Address::PREFIX;

    /// Reads `openstack:CLOUD?flavor=F&image=I&network=N`, with `ssh-user=`, `ssh-port=`, `ssh-folder=` and `ssh-config=` for the guest.
    ///
    /// # Errors
    /// It is no such address, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (login, platform) = GuestLogin::take_from(text)?;
        let cloud = Address::parse(&platform).map_err(|error| error.to_string())?;
        if cloud.image.is_none() || cloud.flavor.is_none() {
            return Err(format!(
                "{cloud}: what is a server made of? Add ?flavor=NAME&image=NAME: its guest needs an ssh server that lets your key in"
            ));
        }
        if cloud.network.as_deref() == Some("none") {
            return Err(format!(
                "{cloud}: a guest without a network cannot be reached: name one by network="
            ));
        }
        Ok(Self { platform, cloud, login })
    }

    /// What names the machine where nobody does.
    #[must_use]
    pub fn host(&self) -> &str {
        if self.cloud.cloud.is_empty() { "openstack" } else { &self.cloud.cloud }
    }
}

/// Whom to trust is not shown.
impl fmt::Display for OpenStackGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}&ssh-folder={}", self.cloud, self.login.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_flavor_an_image_a_network_and_a_login() {
        let text = "openstack:lab?flavor=m1&image=debian&network=net&ssh-user=debian&ssh-port=2222&verify=no";
        let guest = OpenStackGuest::parse(text).unwrap();
        assert_eq!(guest.platform, "openstack:lab?flavor=m1&image=debian&network=net&verify=no");
        assert_eq!(
            guest.to_string(),
            "openstack:lab?flavor=m1&image=debian&network=net&ssh-folder=/var/tmp/virtbench"
        );
        assert_eq!(
            guest.login.at("10.0.0.7").unwrap().to_string(),
            "ssh://debian@10.0.0.7:2222/var/tmp/virtbench"
        );
        assert_eq!(guest.host(), "lab");
    }

    #[test]
    fn what_is_no_server_is_refused_before_one_is_made() {
        for (text, word) in [
            ("openstack:lab", "?flavor=NAME&image=NAME"),
            ("openstack:lab?flavor=a&image=b&network=none", "cannot be reached"),
            ("openstack:lab?flavor=a&image=b&ssh-port=x", "no such port"),
            ("openstack:lab?flavor=a&image=b&ssh-key=x", "ssh-config=FILE"),
            ("openstack:lab?flavor=a&image=b&disk=nvme", "no option"),
        ] {
            let error = OpenStackGuest::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
