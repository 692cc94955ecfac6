//! A cable between two appliances of this host: a pair of virtual Ethernet devices, which goes with the first of their networks.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_agent::interface::{set_address, set_up};

use super::error::ApplianceError;
use super::network::NetworkNamespace;
use crate::cable::{PREFIX, cable_address};
use crate::command::{CommandError, run_command};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

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
