//! What an appliance has of the others that it reaches, tiers of its application or members of its tile: cables to them, and their names.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_agent::interface::{set_address, set_up};
use virtbench_agent::protocol::appliance::HostName;

use super::error::ApplianceError;
use super::network::NetworkNamespace;
use crate::command::{CommandError, run_command};
use crate::guest_network::{CableEnd, PREFIX, cable_address};

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
        let address = join(here, there, number)?;
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

const LIMIT: Duration = Duration::from_secs(30);

/// Joins two networks by a cable with a number that no other of either has. Returns the address of its end in the second one.
///
/// # Errors
/// The program `ip` is missing, the kernel has no such devices, or root is needed.
pub(super) fn join(
    here: &NetworkNamespace,
    there: &NetworkNamespace,
    number: u8,
) -> Result<Ipv4Addr, ApplianceError> {
    let failed = |source| ApplianceError::Network { action: "networks cannot be joined by a cable", source };
    let name = format!("cable{number}");
    let (here_path, there_path) = (here.own.path(), there.own.path());
    let mut command = Command::new("ip");
    command.args(["link", "add", &name, "netns", &here_path, "type", "veth"]);
    command.args(["peer", "name", &name, "netns", &there_path]);
    run_command(command, "ip link add", LIMIT, &AtomicBool::new(false))
        .map_err(|error| failed(named(error)))?;
    for (network, side) in [(here, 1), (there, 2)] {
        let furnish = || set_address(&name, cable_address(number, side), PREFIX).and_then(|()| set_up(&name));
        network.within(furnish).and_then(|done| done).map_err(failed)?;
    }
    Ok(cable_address(number, 2))
}

fn named(error: CommandError) -> io::Error {
    match error {
        CommandError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            io::Error::other("the program ip is missing: apt install iproute2")
        }
        other => io::Error::other(other),
    }
}

/// The names of those that an appliance reaches.
pub(crate) fn host_names(tiers: &TierLinks) -> Vec<HostName> {
    let host = |(name, address): &(String, std::net::Ipv4Addr)| HostName {
        name: name.clone(),
        address: address.octets(),
    };
    tiers.hosts.iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn two_networks_that_are_joined_reach_each_other_and_use_the_same_ports() {
        let made = || NetworkNamespace::new().unwrap_or_else(|error| panic!("{error}"));
        let (first, second, third) = (made(), made(), made());
        let database = join(&first, &second, 0).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(join(&third, &second, 1).unwrap_or_else(|error| panic!("{error}")), cable_address(1, 2));
        let listen =
            |network: &NetworkNamespace| network.within(|| TcpListener::bind("0.0.0.0:80")).unwrap().unwrap();
        let listeners = [listen(&first), listen(&second), listen(&third)];
        first.within(|| TcpStream::connect((database, 80))).unwrap().unwrap();
        third.within(|| TcpStream::connect((cable_address(1, 2), 80))).unwrap().unwrap();
        drop(listeners);
    }
}
