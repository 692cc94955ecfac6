//! Where an existing machine is, `ssh://user@host:port/folder`, and where on it appliances run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, io};

use fluent_uri::Uri;
use fluent_uri::pct_enc::{EStr, Encoder};
use thiserror::Error;

/// How Windows names its whole disks, before their numbers.
const DRIVE: &str = "PhysicalDrive";

/// How the only agent in a folder is begun.
const BEGIN: &str = "--remote";

/// What cannot be the address of a machine.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{address}: {why}; an address is ssh://[USER@]HOST[:PORT]/FOLDER")]
pub struct AddressError {
    /// As it was given.
    address: String,
    /// What is wrong with it.
    why: String,
}

/// A machine that exists, and a folder on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAddress {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    folder: String,
    config: Option<PathBuf>,
    keep: bool,
    begin: String,
    device: Option<String>,
    may_overwrite: bool,
}

impl SshAddress {
    /// The scheme of such addresses.
    pub const SCHEME: &str = "ssh";

    /// Reads `ssh://[USER@]HOST[:PORT]/FOLDER[?config=FILE][&agent=keep]`. The folder is absolute; `/~/FOLDER` is one in the
    /// user's home there. `config` is given to ssh in place of the user's own configuration. With `agent=keep` the agent
    /// stays in the user's cache there, and is not sent again. With `device` loads go to that whole disk there, and write to it
    /// only with `overwrite=allow`.
    ///
    /// # Errors
    /// It is no such address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |why: &str| AddressError { address: text.to_owned(), why: why.to_owned() };
        let uri = Uri::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if uri.scheme().as_str() != Self::SCHEME {
            return Err(wrong("not an ssh address"));
        }
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| wrong("no host"))?;
        let user = authority
            .userinfo()
            .map(|user| decoded(user).ok_or_else(|| wrong("it is not UTF-8")))
            .transpose()?;
        if user.as_ref().is_some_and(|user| user.contains(':')) {
            // Not even in an error.
            let address = format!("ssh://...@{}", authority.host());
            return Err(AddressError {
                address,
                why: "a password does not belong into an address; use a key".into(),
            });
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if [Some(&host), user.as_ref()].into_iter().flatten().any(|word| word.starts_with('-')) {
            return Err(wrong("a name that begins with - would be taken for an option"));
        }
        let port = authority.port_to_u16().map_err(|_| wrong("no such port"))?;
        let path = decoded(uri.path()).ok_or_else(|| wrong("it is not UTF-8"))?;
        let folder = path.strip_prefix("/~/").map_or(path.as_str(), |at_home| at_home).to_owned();
        let below = folder.strip_prefix('/').unwrap_or(&folder);
        let is_drive = below.len() <= 3 && below.trim_end_matches('/').ends_with(':');
        if folder.trim_matches('/').is_empty() || is_drive {
            return Err(wrong("it names no folder to work in"));
        }
        if folder.contains(['\n', '\0']) {
            return Err(wrong("a folder's name cannot have a line's end in it"));
        }
        let (config, keep, device, may_overwrite, begin) = (None, false, None, false, BEGIN.into());
        let mut address = Self { user, host, port, folder, config, keep, begin, device, may_overwrite };
        for setting in uri.query().into_iter().flat_map(|query| query.split('&')) {
            let setting = decoded(setting).ok_or_else(|| wrong("it is not UTF-8"))?;
            match setting.split_once('=') {
                Some(("config", file)) => address.config = Some(PathBuf::from(file)),
                Some(("agent", "keep")) => address.keep = true,
                Some(("device", device)) => {
                    address.device = Some(disk_name(device).ok_or_else(|| {
                        wrong("a device is named as in device=/dev/nvme1n1, or device=PhysicalDrive1 on Windows")
                    })?);
                }
                Some(("overwrite", "allow")) => address.may_overwrite = true,
                _ => {
                    return Err(wrong(&format!(
                        "{setting} is no setting of it: config=FILE, agent=keep, device=DISK, overwrite=allow"
                    )));
                }
            }
        }
        if address.may_overwrite && address.device.is_none() {
            return Err(wrong("overwrite=allow is for a device, as in device=/dev/nvme1n1&overwrite=allow"));
        }
        Ok(address)
    }

    /// The same for one of several agents that share the folder: each works in one of its own in it. Its name is of letters,
    /// digits, dots, hyphens and underscores.
    #[must_use]
    pub fn with_agent_name(self, name: &str) -> Self {
        Self { begin: format!("--remote-as {name}"), ..self }
    }

    /// The same for an agent of such a name that encloses an appliance.
    pub(super) fn enclosing(self, name: &str) -> Self {
        Self { begin: format!("--enclose-as {name}"), ..self }
    }

    /// How the agent is begun, in words between which there are spaces.
    pub(super) fn begin(&self) -> &str {
        &self.begin
    }

    /// What ssh is told to reach it, without a command.
    pub(super) fn ssh_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(config) = &self.config {
            arguments.extend(["-F".into(), config.to_string_lossy().into_owned()]);
        }
        if let Some(port) = self.port {
            arguments.extend(["-p".into(), port.to_string()]);
        }
        if let Some(user) = &self.user {
            arguments.extend(["-l".into(), user.clone()]);
        }
        arguments.push(self.host.clone());
        arguments
    }

    /// The machine's name.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The name or address by which ssh reaches it: what a user's configuration has in place of an alias.
    ///
    /// # Errors
    /// ssh does not say.
    pub(crate) fn network_name(&self) -> io::Result<String> {
        let said = Command::new("ssh").arg("-G").args(self.ssh_arguments()).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&said.stdout);
        let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
        name.map(|name| name.trim().to_owned()).ok_or_else(|| io::Error::other("`ssh -G` names no host"))
    }

    /// The folder there if it is named with a drive, as only Windows has them: `C:/bench`.
    pub(super) fn drive_folder(&self) -> Option<&str> {
        let folder = self.folder.strip_prefix('/').unwrap_or(&self.folder);
        let mut letters = folder.chars();
        let is_drive = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
            && letters.next() == Some(':')
            && letters.next() == Some('/');
        is_drive.then_some(folder)
    }

    /// What OpenSSH's programs are told to reach it, as options that all of them have; and the host's name.
    pub(super) fn transfer_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(config) = &self.config {
            arguments.extend(["-F".into(), config.to_string_lossy().into_owned()]);
        }
        let port = self.port.map(|port| format!("Port={port}"));
        let user = self.user.as_ref().map(|user| format!("User={user}"));
        for setting in [port, user].into_iter().flatten() {
            arguments.extend(["-o".into(), setting]);
        }
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        arguments.push(host);
        arguments
    }

    /// The name of the agent among several that share the folder.
    pub(super) fn agent_name(&self) -> Option<&str> {
        self.begin.split_once(' ').map(|(_, name)| name)
    }

    /// Whether the agent is to enclose an appliance.
    pub(super) fn encloses(&self) -> bool {
        self.begin.starts_with("--enclose-as")
    }

    /// The folder there; a relative one begins in the user's home.
    #[must_use]
    pub fn folder(&self) -> &Path {
        Path::new(&self.folder)
    }

    /// The same, for what works in the folder.
    ///
    /// # Errors
    /// It names a whole disk, which loads alone use.
    pub fn without_device(self) -> Result<Self, AddressError> {
        match &self.device {
            None => Ok(self),
            Some(device) => Err(AddressError {
                address: self.to_string(),
                why: format!("device={device} is for loads, and this works in the folder: leave it out"),
            }),
        }
    }

    /// The whole disk there that loads go to, and whether they may write to it.
    pub(super) fn device(&self) -> Option<(&str, bool)> {
        self.device.as_deref().map(|device| (device, self.may_overwrite))
    }

    /// Whether the agent stays there.
    pub(super) fn keeps_agent(&self) -> bool {
        self.keep
    }
}

/// The name by which a machine's system opens a whole disk.
fn disk_name(text: &str) -> Option<String> {
    let bare = text.strip_prefix(r"\\.\").unwrap_or(text);
    let number =
        bare.get(..DRIVE.len()).filter(|name| name.eq_ignore_ascii_case(DRIVE)).map(|_| &bare[DRIVE.len()..]);
    match number {
        Some(number) => number.parse::<u32>().is_ok().then(|| format!(r"\\.\{DRIVE}{number}")),
        None => (text.starts_with("/dev/") && !text.contains('\0')).then(|| text.to_owned()),
    }
}

fn decoded<E: Encoder>(part: &EStr<E>) -> Option<String> {
    part.decode().to_string().ok().map(String::from)
}

impl fmt::Display for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?
        } else {
            f.write_str(&self.host)?
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        let begin = if self.folder.starts_with('/') { "" } else { "/~/" };
        write!(f, "{begin}{}", self.folder)
    }
}

/// The setting of an address that names the bridge.
const BRIDGE: &str = "bridge=";

/// The longest name of a network interface.
const MOST_NAME: usize = 15;

/// Where such a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    pub(super) address: SshAddress,
    pub(super) bridge: String,
}

impl SshHost {
    /// Reads `ssh://[USER@]HOST[:PORT]/FOLDER?bridge=NAME`, with what else [`SshAddress::parse`] reads.
    ///
    /// # Errors
    /// It is no such address, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (place, settings) = text.split_once('?').unwrap_or((text, ""));
        let (bridges, others): (Vec<&str>, Vec<&str>) =
            settings.split('&').filter(|one| !one.is_empty()).partition(|one| one.starts_with(BRIDGE));
        let bridge = match bridges.as_slice() {
            [one] => &one[BRIDGE.len()..],
            [] => {
                return Err(format!(
                    "{text}: on which bridge of that machine are members? Add ?bridge=NAME; they get addresses by DHCP there"
                ));
            }
            _ => return Err(format!("{text}: bridge=NAME, once")),
        };
        let is_name = |letter: char| letter.is_ascii_graphic() && !"/:%".contains(letter);
        if bridge.is_empty()
            || bridge.starts_with('-')
            || bridge.len() > MOST_NAME
            || !bridge.chars().all(is_name)
        {
            return Err(format!("{text}: {bridge:?} is no name of a bridge"));
        }
        let rest = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        let address = SshAddress::parse(&rest).and_then(SshAddress::without_device);
        let address = address.map_err(|error| error.to_string())?;
        if let Some(folder) = address.drive_folder() {
            return Err(format!(
                "{text}: members are appliances in namespaces of Linux, and {folder} is a folder of Windows: name a Linux machine"
            ));
        }
        Ok(Self { address, bridge: bridge.to_owned() })
    }

    /// The machine and the folder on it.
    #[must_use]
    pub fn address(&self) -> &SshAddress {
        &self.address
    }

    /// What appliances are on, in words.
    #[must_use]
    pub fn network(&self) -> String {
        format!("bridge {}", self.bridge)
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?{BRIDGE}{}", self.address, self.bridge)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, arguments, folder) in [
            ("ssh://metal/srv", "metal", "/srv"),
            ("ssh://root@metal:2222/srv/a%20b", "-p 2222 -l root metal", "/srv/a b"),
            ("ssh://[::1]:22/~/work", "-p 22 ::1", "work"),
            ("ssh://metal/srv?config=/etc/x", "-F /etc/x metal", "/srv"),
        ] {
            let address = SshAddress::parse(text).unwrap();
            assert_eq!(address.ssh_arguments().join(" "), arguments, "{text}");
            assert_eq!(address.folder(), Path::new(folder));
        }
        let shown = SshAddress::parse("ssh://root@[::1]:22/~/work?config=x").unwrap().to_string();
        assert_eq!(shown, "ssh://root@[::1]:22/~/work");
    }

    #[test]
    fn a_drive_of_windows_is_told_from_a_folder_of_linux() {
        for (text, folder) in [
            ("ssh://me@metal/C:/bench", Some("C:/bench")),
            ("ssh://metal/d:/a%20b", Some("d:/a b")),
            ("ssh://metal/srv", None),
            ("ssh://metal/c:x", None),
            ("ssh://metal/~/C", None),
        ] {
            let address = SshAddress::parse(text).unwrap();
            assert_eq!(address.drive_folder(), folder, "{text}");
        }
        let address = SshAddress::parse("ssh://me@[::1]:22/C:/b?config=x").unwrap();
        assert_eq!(address.transfer_arguments().join(" "), "-F x -o Port=22 -o User=me [::1]");
        assert_eq!(address.with_agent_name("vm2").agent_name(), Some("vm2"));
    }

    #[test]
    fn a_whole_disk_is_named_as_its_system_does_and_written_to_with_consent_only() {
        for (setting, device) in [
            ("device=/dev/nvme1n1", Some(("/dev/nvme1n1", false))),
            ("device=physicaldrive12&overwrite=allow", Some((r"\\.\PhysicalDrive12", true))),
            ("device=%5C%5C.%5CPhysicalDrive0", Some((r"\\.\PhysicalDrive0", false))),
            ("agent=keep", None),
        ] {
            let address = SshAddress::parse(&format!("ssh://metal/srv?{setting}")).unwrap();
            assert_eq!(address.device(), device, "{setting}");
            assert_eq!(address.without_device().is_err(), device.is_some(), "{setting}");
        }
    }

    #[test]
    fn what_is_wrong_in_an_address_is_said() {
        for (text, word) in [
            ("http://metal/srv", "not an ssh address"),
            ("ssh://metal", "names no folder"),
            ("ssh://metal/", "names no folder"),
            ("ssh://metal/C:", "names no folder"),
            ("ssh://metal/C:/", "names no folder"),
            ("ssh:///srv", "no host"),
            ("ssh://me:secret@metal/srv", "password"),
            ("ssh://-oProxyCommand=x/srv", "option"),
            ("ssh://metal/srv?color=red", "color=red"),
            ("ssh://metal/srv?device=disk", "device=/dev/nvme1n1"),
            ("ssh://metal/C:/b?device=PhysicalDriveX", "device=PhysicalDrive1"),
            ("ssh://metal/srv?overwrite=allow", "is for a device"),
            ("metal", "ssh://[USER@]HOST"),
        ] {
            let error = SshAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "ssh://[-a-z0-9@:/?=&%~\\[\\]]{0,30}") {
            if let Ok(address) = SshAddress::parse(&text) {
                prop_assert!(address.ssh_arguments().last().is_some_and(|host| !host.starts_with('-')));
            }
        }
    }

    #[test]
    fn an_address_names_the_bridge_and_what_else_ssh_needs() {
        let host = SshHost::parse("ssh://root@metal:2222/srv?config=/etc/x&bridge=br0&agent=keep").unwrap();
        assert_eq!(host.to_string(), "ssh://root@metal:2222/srv?bridge=br0");
        assert_eq!(host.network(), "bridge br0");
        assert_eq!(host.address().ssh_arguments().join(" "), "-F /etc/x -p 2222 -l root metal");
        for (text, word) in [
            ("ssh://metal/srv", "Add ?bridge=NAME"),
            ("ssh://metal/srv?bridge=", "no name of a bridge"),
            ("ssh://metal/srv?bridge=-x", "no name of a bridge"),
            ("ssh://metal/srv?bridge=a/b", "no name of a bridge"),
            ("ssh://metal/srv?bridge=a&bridge=b", "once"),
            ("ssh://metal/srv?bridge=a&color=red", "color=red"),
            ("ssh://metal/srv?bridge=a&device=/dev/sdb", "is for loads"),
            ("ssh://metal?bridge=a", "names no folder"),
            ("ssh://box/C:/bench?bridge=a", "a folder of Windows"),
        ] {
            let error = SshHost::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
