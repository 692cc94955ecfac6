//! A network of one's own, the right to make one, and a place on a bridge of the machine's.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::{io, thread};

use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space, unshare_unsafe,
};

use crate::interface::set_up;

/// A network namespace. The kernel takes it away with the last process and descriptor in it, also after a kill.
#[derive(Debug)]
pub struct OwnNetwork(File);

impl OwnNetwork {
    /// Makes one with its loopback.
    ///
    /// # Errors
    /// Root is needed.
    pub fn new() -> io::Result<Self> {
        let make = || {
            // SAFETY: a network namespace of this thread's own closes no descriptor and shares no memory anew.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            set_up("lo")?;
            File::open("/proc/thread-self/ns/net")
        };
        on_own_thread(make)?.map(Self)
    }

    /// Has the calling thread, and threads and processes that it starts from now on, use this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something on a thread in this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| self.enter().map(|()| act()))?
    }

    /// Where other programs find it while this process has it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

fn on_own_thread<T: Send>(act: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("network".into()).spawn_scoped(scope, act)?;
        thread.join().map_err(|_| io::Error::other("a thread panicked"))
    })
}

/// What it takes to make a network and to enter it.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// By which hosts forbid it: the value that does, and what it is called.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns",
    ),
];

/// Has this process be able to make networks, in a user namespace of its own unless it has the rights already. It keeps its user and
/// its group there, and can neither become another one nor change what is another one's. Programs that it starts get no rights.
/// It has to be called before the process has a second thread: the kernel refuses it then. Returns whether there is such a namespace.
///
/// # Errors
/// This host forbids it: in words, by what.
pub fn allow_own_networks() -> Result<bool, String> {
    let rights = capabilities(None).map_err(|error| error.to_string())?;
    if rights.effective.contains(NEEDED) {
        return Ok(false);
    }
    enter().and_then(|()| OwnNetwork::new()).map(|_| true).map_err(|error| forbidden(&error))
}

fn enter() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: a user namespace closes no descriptor and shares no memory anew.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // Before it a group cannot be mapped (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Why not, as far as the host shows it.
fn forbidden(error: &io::Error) -> String {
    let is_set = |(path, value, _): &(&str, &str, &str)| {
        fs::read_to_string(path).is_ok_and(|text| text.trim() == *value)
    };
    let by = match SWITCHES.iter().find(|switch| is_set(switch)) {
        Some((_, value, name)) => format!(": {name} is {value}"),
        None if is_filtered() => {
            ": a seccomp filter is over this process, as docker's own profile is (--security-opt seccomp=unconfined)".into()
        }
        None => String::new(),
    };
    format!(
        "a network of one's own needs root, or a user namespace, which this host does not allow ({error}){by}"
    )
}

fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

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
