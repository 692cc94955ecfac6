//! Where a node of a cluster is, as whom to log in, and where VMs are made.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use virtbench_https::{Trust, options};

use crate::error::ProxmoxError;

/// The environment variable that may hold the password, or the secret of the token.
pub const PASSWORD_VARIABLE: &str = "VIRTBENCH_PROXMOX_PASSWORD";
/// As whom to log in where nobody is named.
const USER: &str = "root@pam";
/// The port of the API.
const PORT: u16 = 8006;
const FORM: &str = "write for example proxmox:root@pam@pve.example?ca=/etc/pve.pem, or with a token proxmox:root@pam!bench@pve.example";

/// A server, as an address names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its name and port.
    pub host: String,
    /// As whom to log in, with the realm; with `!` and its name for a token.
    pub user: String,
    /// Whom to believe that it is the server.
    pub trust: Trust,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
    /// The only node on which VMs are made.
    pub node: Option<String>,
    /// Where their disks lie.
    pub storage: Option<String>,
    /// The bridge that their network card is on; without one they have none.
    pub bridge: Option<String>,
    /// The pool that they are put into.
    pub pool: Option<String>,
    /// A VM or template of which VMs are made, by number or name.
    pub template: Option<String>,
}

impl Address {
    /// How every address begins.
    pub const PREFIX: &str = "proxmox:";

    /// Reads `proxmox:[USER@REALM[!TOKEN]@]HOST[:PORT][?OPTIONS]`. Options are `ca=FILE`, `thumbprint=HEX`, `verify=no`,
    /// `password-file=FILE`, `node=`, `storage=`, `bridge=`, `pool=` and `template=`.
    ///
    /// # Errors
    /// Why it is no address, with what to write. A password in it is not repeated.
    pub fn parse(text: &str) -> Result<Self, ProxmoxError> {
        Self::read(text).map_err(ProxmoxError::Settings)
    }

    fn read(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix(Self::PREFIX)
            .ok_or_else(|| format!("this is no address of Proxmox VE: {FORM}"))?;
        let (server, query) = rest.split_once('?').unwrap_or((rest, ""));
        let server = server.trim_start_matches('/').trim_end_matches('/');
        let (user, host) = server.rsplit_once('@').map_or((USER.to_owned(), server), |(user, host)| {
            (percent_decode_str(user).decode_utf8_lossy().into_owned(), host)
        });
        if user.contains(':') {
            return Err(format!(
                "a password in an address can be read by every user of this machine: leave it out, and give it in \
                 {PASSWORD_VARIABLE} or in a file (?password-file=FILE)"
            ));
        }
        let (name, realm) = user.split_once('@').unwrap_or((&user, ""));
        if name.is_empty() || realm.is_empty() || realm.ends_with('!') {
            return Err(format!("{user:?} is no user: a user has a realm, such as root@pam; {FORM}"));
        }
        let mut address = Self {
            host: host_and_port(host)?,
            user,
            trust: Trust::System,
            password_file: None,
            node: None,
            storage: None,
            bridge: None,
            pool: None,
            template: None,
        };
        for (name, value) in options(query, &mut address.trust)? {
            address.take(&name, value)?;
        }
        Ok(address)
    }

    fn take(&mut self, name: &str, value: String) -> Result<(), String> {
        let field = match name {
            "node" => &mut self.node,
            "storage" => &mut self.storage,
            "bridge" => &mut self.bridge,
            "pool" => &mut self.pool,
            "template" => &mut self.template,
            "password-file" if !value.is_empty() => {
                self.password_file = Some(value.into());
                return Ok(());
            }
            _ => return Err(no_option(name)),
        };
        if value.is_empty() || value.contains('/') {
            return Err(no_option(name));
        }
        *field = Some(value);
        Ok(())
    }

    /// Whether the user is a token, which needs no ticket.
    #[must_use]
    pub fn is_token(&self) -> bool {
        self.user.contains('!')
    }
}

fn no_option(name: &str) -> String {
    format!(
        "an address has no option {name:?} with this value: ca=FILE, thumbprint=HEX, verify=no, password-file=FILE, node=, \
         storage=, bridge=, pool=, template="
    )
}

fn host_and_port(text: &str) -> Result<String, String> {
    let (name, port) = match text.rsplit_once(':') {
        // The colons of an address of version 6 are within brackets.
        Some((name, port)) if !port.ends_with(']') => {
            (name, port.parse().map_err(|_| format!("{port:?} is no port"))?)
        }
        _ => (text, PORT),
    };
    let is_named = !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter == '/');
    if !is_named {
        return Err(format!("the address lacks a host: {FORM}"));
    }
    Ok(format!("{name}:{port}"))
}

/// Neither options nor a password are shown.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}@{}", Self::PREFIX, self.user, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_proxmox_says_all_but_the_password() {
        let address = Address::parse(
            "proxmox:admin@pve!bench@pve.example?node=n1&storage=local-lvm&verify=no&template=9000",
        )
        .unwrap();
        assert_eq!((address.host.as_str(), address.user.as_str()), ("pve.example:8006", "admin@pve!bench"));
        assert!(address.is_token() && address.trust == Trust::Anybody);
        assert_eq!((address.node.as_deref(), address.template.as_deref()), (Some("n1"), Some("9000")));
        assert_eq!(address.to_string(), "proxmox:admin@pve!bench@pve.example:8006");
        let short = Address::parse("proxmox:[::1]:18006").unwrap();
        assert_eq!((short.host.as_str(), short.user.as_str()), ("[::1]:18006", "root@pam"));
        assert!(!short.is_token());
        assert_eq!(Address::parse("proxmox:[::1]").unwrap().host, "[::1]:8006");
    }

    #[test]
    fn what_is_no_address_of_proxmox_is_refused_and_a_password_not_repeated() {
        let secret = Address::parse("proxmox:root@pam:hunter2@h").unwrap_err().to_string();
        assert!(secret.contains(PASSWORD_VARIABLE) && !secret.contains("hunter2"), "{secret}");
        for (text, word) in [
            ("", "no address"),
            ("https://h", "no address"),
            ("proxmox:", "lacks a host"),
            ("proxmox:root@h", "has a realm"),
            ("proxmox:h:99999", "no port"),
            ("proxmox:h?thumbprint=12", "64 hexadecimal digits"),
            ("proxmox:h?pool=", "no option"),
            ("proxmox:h?verify=yes", "no option"),
            ("proxmox:h?ca=a&verify=no", "once"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
