//! What OpenSSH's programs are told, whatever a user's configuration says.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// For any connection: nobody can be asked for anything, and one that is cut is noticed in 15 seconds.
pub(super) const CONNECTION: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// For a session: no terminal, no escapes, and the command that is given.
const SESSION: [&str; 5] = ["-T", "-e", "none", "-o", "RemoteCommand=none"];
/// What undoes more that a user's configuration may say for logins by hand: no input, no session, no foreground.
const MORE_OPTIONS: [&str; 6] =
    ["-o", "StdinNull=no", "-o", "SessionType=default", "-o", "ForkAfterAuthentication=no"];
/// The version from which on there are these.
const MORE_FROM: (u32, u32) = (8, 7);

/// What ssh is told for a session.
pub(super) fn options() -> Vec<&'static str> {
    let more: &[&str] = if has_more_options() { &MORE_OPTIONS } else { &[] };
    SESSION.iter().chain(&CONNECTION).chain(more).copied().collect()
}

/// Whether this host's ssh knows them, as it says itself.
fn has_more_options() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let said = Command::new("ssh").arg("-V").stdin(Stdio::null()).output();
        said.is_ok_and(|said| {
            version(&String::from_utf8_lossy(&said.stderr)).is_some_and(|version| version >= MORE_FROM)
        })
    })
}

/// `OpenSSH_9.2p1 Debian-2` is 9.2.
fn version(said: &str) -> Option<(u32, u32)> {
    let digits = said.split("OpenSSH_").nth(1)?;
    let mut numbers = digits.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_ssh_are_read() {
        assert_eq!(version("OpenSSH_9.2p1 Debian-2+deb12u2, OpenSSL 3.0.11"), Some((9, 2)));
        assert_eq!(version("OpenSSH_for_Windows_8.1p1"), None);
        assert_eq!(version("OpenSSH_10.0p2"), Some((10, 0)));
        assert!(has_more_options(), "the ssh of this host");
    }
}
