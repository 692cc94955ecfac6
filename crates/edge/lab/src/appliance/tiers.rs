//! What an appliance has of the others that it reaches: tiers of its application, or members of its tile.

use std::io;
use std::net::Ipv4Addr;

use super::error::ApplianceError;
use super::namespace_cable;
use super::network::NetworkNamespace;
use crate::cable::CableEnd;

/// Others that an appliance reaches by name, and the cables that lead to them if it is a guest that shares no network with them.
#[derive(Debug, Clone, Default)]
pub struct TierLinks {
    pub(crate) cables: Vec<CableEnd>,
    pub(crate) hosts: Vec<(String, Ipv4Addr)>,
}

impl TierLinks {
    /// Has the appliance of these links reach another one as `name`, by a cable with a number that no other cable of theirs has.
    ///
    /// # Errors
    /// There are no sockets left.
    pub fn connect(&mut self, name: &str, other: &mut Self, number: u8) -> io::Result<()> {
        let (here, there) = CableEnd::pair(number)?;
        self.hosts.push((name.to_owned(), there.address()));
        self.cables.push(here);
        other.cables.push(there);
        Ok(())
    }

    /// The same natively: the appliance of these links is in the network `here`, the other one in `there`, and both may run already.
    ///
    /// # Errors
    /// The program `ip` is missing, the kernel has no virtual Ethernet devices, or root is needed.
    pub fn connect_natively(
        &mut self,
        name: &str,
        (here, there): (&NetworkNamespace, &NetworkNamespace),
        number: u8,
    ) -> Result<(), ApplianceError> {
        let address = namespace_cable::join(here, there, number)?;
        self.hosts.push((name.to_owned(), address));
        Ok(())
    }

    /// Has it reach another one, which is on its network already, as `name`.
    pub fn name(&mut self, name: &str, address: Ipv4Addr) {
        self.hosts.push((name.to_owned(), address));
    }

    pub(crate) fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        self.hosts.iter().find(|(host, _)| host == name).map(|(_, address)| *address)
    }
}
