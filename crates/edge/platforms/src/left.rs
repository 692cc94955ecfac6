//! What runs have left on a platform, whichever study they were of: shown, and removed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use virtbench_lab::{LeftRun, LibvirtAddress, SweepOf, connect_to, remove_made, runs_on};
use virtbench_mark::RunId;
use virtbench_record::FailureKind;

use crate::libvirt::failure;
use crate::platform::Failure;
use crate::{openstack, proxmox, vsphere};

/// How addresses of vSphere, of Proxmox VE and of OpenStack begin.
const VSPHERE: &str = "vsphere+";
const PROXMOX: &str = "proxmox:";
const OPENSTACK: &str = "openstack:";
/// How long it may take to look.
const LOOK_LIMIT: Duration = Duration::from_secs(120);
/// How long removing may take on a hypervisor.
const REMOVE_LIMIT: Duration = Duration::from_secs(1800);

/// Where runs may have left something.
#[derive(Debug)]
pub enum LeftPlace {
    /// A hypervisor by libvirt, all its pools.
    Libvirt(LibvirtAddress),
    /// A vCenter or a host.
    Vsphere(String),
    /// A cluster of Proxmox VE, by one of its nodes.
    Proxmox(String),
    /// A project of an OpenStack cloud.
    OpenStack(String),
}

impl LeftPlace {
    /// Reads `libvirt+URI`, `vsphere+https://...`, `proxmox:HOST` or `openstack:CLOUD`.
    ///
    /// # Errors
    /// It is none of these, with what to write.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let refused = |why: String| Failure::new(FailureKind::Refused, why);
        if text.starts_with(VSPHERE) {
            vsphere::OnVsphere::check(text)?;
            return Ok(Self::Vsphere(text.to_owned()));
        }
        if text.starts_with(PROXMOX) {
            proxmox::OnProxmox::check(text)?;
            return Ok(Self::Proxmox(text.to_owned()));
        }
        if text.starts_with(OPENSTACK) {
            openstack::OnOpenStack::check(text)?;
            return Ok(Self::OpenStack(text.to_owned()));
        }
        if !text.starts_with(LibvirtAddress::PREFIX) {
            return Err(refused(format!(
                "{text} is no platform: give libvirt+URI, such as libvirt+qemu:///system, vsphere+https://USER@HOST/sdk, proxmox:HOST, or openstack:CLOUD"
            )));
        }
        // Settings of an environment's do not matter here.
        let (address, _) = LibvirtAddress::parse(text).map_err(|error| refused(error.to_string()))?;
        Ok(Self::Libvirt(address))
    }

    /// The runs that have something there, the oldest first.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub fn runs(&self) -> Result<Vec<LeftRun>, Failure> {
        match self {
            Self::Libvirt(address) => {
                let unreachable = |why| Failure::new(FailureKind::Unreachable, why);
                runs_on(&connect_to(address).map_err(unreachable)?).map_err(failure)
            }
            Self::Vsphere(address) => vsphere::runs_on(address, Instant::now() + LOOK_LIMIT),
            Self::Proxmox(address) => proxmox::runs_on(address, Instant::now() + LOOK_LIMIT),
            Self::OpenStack(address) => openstack::runs_on(address, Instant::now() + LOOK_LIMIT),
        }
    }

    /// Removes what those of these runs have left that are thought dead by then; how many VMs and volumes.
    ///
    /// # Errors
    /// It cannot be reached, or something cannot be removed.
    pub fn remove(&self, runs: &BTreeSet<RunId>) -> Result<usize, Failure> {
        match self {
            Self::Libvirt(address) => {
                let unreachable = |why| Failure::new(FailureKind::Unreachable, why);
                let hypervisor = connect_to(address).map_err(unreachable)?;
                let until = Instant::now() + REMOVE_LIMIT;
                remove_made(&hypervisor, SweepOf::Dead(runs), until).map_err(failure)
            }
            Self::Vsphere(address) => vsphere::remove_dead(address, runs, Instant::now() + LOOK_LIMIT),
            Self::Proxmox(address) => proxmox::remove_dead(address, runs, Instant::now() + LOOK_LIMIT),
            Self::OpenStack(address) => openstack::remove_dead(address, runs, Instant::now() + LOOK_LIMIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_hypervisor_a_vcenter_or_a_cluster() {
        assert!(matches!(LeftPlace::parse("libvirt+qemu:///system?memory=1GiB"), Ok(LeftPlace::Libvirt(_))));
        assert!(matches!(LeftPlace::parse("vsphere+https://u@h/sdk"), Ok(LeftPlace::Vsphere(_))));
        assert!(matches!(LeftPlace::parse("proxmox:pve.example?node=a"), Ok(LeftPlace::Proxmox(_))));
        for text in ["qemu:///system", "vsphere+https://h/sdk", "proxmox:root@h", ""] {
            assert_eq!(LeftPlace::parse(text).unwrap_err().kind, FailureKind::Refused, "{text}");
        }
    }
}
