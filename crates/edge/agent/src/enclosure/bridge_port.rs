//! A place on a bridge of the machine's.

use std::io;
use std::process::{Command, Stdio};

use super::own_network::OwnNetwork;

/// The interface of the machine on the bridge.
pub(crate) const INTERFACE: &str = "eth0";

/// Whether the machine has this bridge, and the program that joins it.
///
/// # Errors
/// In words, with the next step.
pub(crate) fn check_bridge(bridge: &str) -> Result<(), String> {
    let said = ip(&["-o", "link", "show", "type", "bridge"])?;
    let found: Vec<&str> = said.lines().filter_map(name).collect();
    if found.contains(&bridge) {
        return Ok(());
    }
    let others = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Err(format!("it has no bridge {bridge}; bridges there: {others}. Name one by bridge=NAME"))
}

/// Gives a network the interface [`INTERFACE`], whose other end is a port of a bridge. Both ends go with the network.
///
/// # Errors
/// In words.
pub(crate) fn join_bridge(network: &OwnNetwork, bridge: &str) -> Result<(), String> {
    let (port, path) = (format!("vb{}", std::process::id()), network.path());
    ip(&["link", "add", &port, "type", "veth", "peer", "name", INTERFACE, "netns", &path])?;
    ip(&["link", "set", &port, "master", bridge, "up"]).map(drop)
}

/// Has `ip` do something, which it does at once; returns what it says.
fn ip(words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(words).stdin(Stdio::null()).output().map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let next = if missing { ": install iproute2 on it" } else { "" };
        format!("the program ip cannot be started on it: {error}{next}")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("`ip {}` failed there: {}", words.join(" "), why.trim()))
}

/// The name in a line such as `3: br0: <BROADCAST,UP> mtu 1500`.
fn name(line: &str) -> Option<&str> {
    line.split(": ").nth(1)?.split('@').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::hardware_address;

    #[test]
    fn names_of_bridges_are_found_in_what_ip_says() {
        let line = "3: br0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP mode DEFAULT\\    link/ether 02:00";
        assert_eq!(name(line), Some("br0"));
        assert_eq!(name("4: br0.7@eth0: <UP> mtu 1500"), Some("br0.7"));
        assert_eq!(name(""), None);
    }

    #[test]
    fn a_port_joins_its_bridge_and_goes_with_the_network() {
        let machine = OwnNetwork::new().unwrap_or_else(|error| panic!("{error}"));
        let listed = || ip(&["-o", "link", "show", "type", "veth"]).unwrap();
        machine
            .within(|| {
                ip(&["link", "add", "br0", "type", "bridge"]).unwrap();
                check_bridge("br0").unwrap();
                let missing = check_bridge("br1").unwrap_err();
                assert!(missing.contains("no bridge br1; bridges there: br0."), "{missing}");
                let member = OwnNetwork::new().unwrap();
                join_bridge(&member, "br0").unwrap();
                assert!(listed().contains("master br0"), "{}", listed());
                let own = member.within(|| ip(&["-o", "link", "show"])).unwrap().unwrap();
                assert!(own.contains(INTERFACE), "{own}");
                let hardware = member.within(|| hardware_address(INTERFACE)).unwrap().unwrap();
                let shown = hardware.map(|byte| format!("{byte:02x}")).join(":");
                assert!(own.contains(&shown), "{shown}: {own}");
                drop(member);
                let begun = std::time::Instant::now();
                while !listed().is_empty() {
                    assert!(begun.elapsed().as_secs() < 30, "{}", listed());
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            })
            .unwrap();
    }
}
