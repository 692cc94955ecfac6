//! The right to make networks, for users that have none: a user namespace, in which a process has every right over what it makes there.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

use super::own_network::OwnNetwork;

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
