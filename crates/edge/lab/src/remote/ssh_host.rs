//! A machine that exists and runs appliances natively, each as a machine of its own on a bridge there.

use std::fmt;

use super::address::SshAddress;

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
    use super::*;

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
