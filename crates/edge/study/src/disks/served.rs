//! What a client has to know of the software that it loads.

use std::net::SocketAddr;

use virtbench_lab::{Reach, RunningAppliance};

/// Software that listens somewhere.
pub(crate) trait Served {
    /// The ports of its services, in their order.
    fn ports(&self) -> Vec<u16>;
    /// Where clients connect to for one of these ports.
    fn address(&self, port: u16) -> Option<SocketAddr>;
    /// How many processors it has.
    fn processors(&self) -> u32;
    /// Where clients have to be.
    fn reach(&self) -> Reach;
}

impl Served for RunningAppliance {
    fn ports(&self) -> Vec<u16> {
        Self::ports(self)
    }

    fn address(&self, port: u16) -> Option<SocketAddr> {
        Self::address(self, port)
    }

    fn processors(&self) -> u32 {
        self.facts().vcpus
    }

    fn reach(&self) -> Reach {
        Self::reach(self)
    }
}
