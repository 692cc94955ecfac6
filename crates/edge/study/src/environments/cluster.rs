//! VMs of clusters and clouds as environments: of Proxmox VE and of OpenStack. A build without clusters has none of them.

use virtbench_lab::Environment;

#[cfg(feature = "full")]
pub(crate) use with::ClusterGuest;

#[cfg(not(feature = "full"))]
pub(super) use without::ClusterGuest;

/// The schemes of their addresses.
pub(super) const SCHEMES: [&str; 2] = ["proxmox", "openstack"];

/// Whether an address is one of a cluster or cloud.
pub(crate) fn is_cluster(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// Reads `proxmox:HOST?template=NAME...` or `openstack:CLOUD?flavor=NAME...`.
///
/// # Errors
/// It is no such address, or this build has none, in words that repeat no password.
pub(super) fn parse(text: &str) -> Result<ClusterGuest, String> {
    ClusterGuest::parse(text)
}

/// The environment in which such a VM is made, with a test file of so many bytes, or for files.
pub(super) fn environment(name: &str, guest: &ClusterGuest, size_bytes: Option<u64>) -> Box<dyn Environment> {
    guest.environment(name, size_bytes)
}

#[cfg(feature = "full")]
mod with {
    use std::fmt;

    use virtbench_lab::{Environment, SshAddress};
    use virtbench_platforms::{Failure, MadeVm, OpenStackGuest, ProxmoxGuest, TemplateVm, VmTemplate};

    /// Where a VM is made.
    #[derive(Debug, Clone, PartialEq)]
    pub enum ClusterGuest {
        /// On a cluster of Proxmox VE.
        Proxmox(ProxmoxGuest),
        /// In a project of an OpenStack cloud.
        OpenStack(OpenStackGuest),
    }

    impl ClusterGuest {
        /// Reads one's address.
        ///
        /// # Errors
        /// It is none, in words that repeat no password.
        pub(crate) fn parse(text: &str) -> Result<Self, String> {
            if text.starts_with(OpenStackGuest::PREFIX) {
                return OpenStackGuest::parse(text).map(Self::OpenStack);
            }
            ProxmoxGuest::parse(text).map(Self::Proxmox)
        }

        pub(in super::super) fn host(&self) -> &str {
            match self {
                Self::Proxmox(guest) => guest.host(),
                Self::OpenStack(guest) => guest.host(),
            }
        }

        pub(super) fn environment(&self, name: &str, size_bytes: Option<u64>) -> Box<dyn Environment> {
            Box::new(TemplateVm::new(name, self.clone(), size_bytes))
        }

        fn template(&self) -> &dyn VmTemplate {
            match self {
                Self::Proxmox(guest) => guest,
                Self::OpenStack(guest) => guest,
            }
        }
    }

    impl VmTemplate for ClusterGuest {
        fn make(&self) -> Result<MadeVm, Failure> {
            self.template().make()
        }

        fn login(&self, ip: &str) -> Result<SshAddress, String> {
            self.template().login(ip)
        }
    }

    impl fmt::Display for ClusterGuest {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Proxmox(guest) => guest.fmt(f),
                Self::OpenStack(guest) => guest.fmt(f),
            }
        }
    }
}

#[cfg(not(feature = "full"))]
mod without {
    use std::fmt;

    use virtbench_lab::Environment;

    /// There is none.
    #[derive(Debug, Clone, PartialEq)]
    pub enum ClusterGuest {}

    impl ClusterGuest {
        pub(in super::super) fn parse(_: &str) -> Result<Self, String> {
            Err("this build leaves clusters of Proxmox VE and clouds of OpenStack out: `make install` builds all".into())
        }

        pub(in super::super) fn host(&self) -> &str {
            match *self {}
        }

        pub(super) fn environment(&self, _: &str, _: Option<u64>) -> Box<dyn Environment> {
            match *self {}
        }
    }

    impl fmt::Display for ClusterGuest {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {}
        }
    }
}
