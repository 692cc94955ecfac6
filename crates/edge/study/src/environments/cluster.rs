//! VMs of a cluster of Proxmox VE as environments. A build without clusters has none of them.

use virtbench_lab::Environment;

#[cfg(feature = "full")]
pub(super) use virtbench_platforms::ProxmoxGuest as ClusterGuest;

#[cfg(not(feature = "full"))]
pub(super) use without::ClusterGuest;

/// Reads `proxmox:HOST?template=NAME...`.
///
/// # Errors
/// It is no such address, or this build has none, in words that repeat no password.
pub(super) fn parse(text: &str) -> Result<ClusterGuest, String> {
    ClusterGuest::parse(text)
}

/// The environment in which such a VM is made, with a test file of so many bytes, or for files.
#[cfg(feature = "full")]
pub(super) fn environment(name: &str, guest: &ClusterGuest, size_bytes: Option<u64>) -> Box<dyn Environment> {
    Box::new(virtbench_platforms::ProxmoxVm::new(name, guest.clone(), size_bytes))
}

/// The same where there is none.
#[cfg(not(feature = "full"))]
pub(super) fn environment(_: &str, guest: &ClusterGuest, _: Option<u64>) -> Box<dyn Environment> {
    match *guest {}
}

#[cfg(not(feature = "full"))]
mod without {
    use std::fmt;

    /// There is none.
    #[derive(Debug, Clone, PartialEq)]
    pub enum ClusterGuest {}

    impl ClusterGuest {
        pub(in super::super) fn parse(_: &str) -> Result<Self, String> {
            Err("this build leaves clusters of Proxmox VE out: `make install` builds all".into())
        }

        pub(in super::super) fn host(&self) -> &str {
            match *self {}
        }
    }

    impl fmt::Display for ClusterGuest {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {}
        }
    }
}
