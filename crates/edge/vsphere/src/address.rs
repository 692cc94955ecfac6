//! Where a vCenter or a host is, and how it is trusted.

use std::fmt;
use std::path::PathBuf;

use fluent_uri::Uri;
use fluent_uri::pct_enc::EStr;
use fluent_uri::pct_enc::encoder::Query;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use virtbench_https::{Trust, options};

use crate::error::VsphereError;

/// The environment variable that may hold the password.
pub const PASSWORD_VARIABLE: &str = "VIRTBENCH_VSPHERE_PASSWORD";
/// What of a user's name cannot stand in an address.
const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// A server, as an address names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Where requests go, such as `https://vcenter.example/sdk`.
    pub url: String,
    /// Its name and port.
    pub host: String,
    /// As whom to log in.
    pub user: String,
    /// Whom to believe that it is the server.
    pub trust: Trust,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
    /// A VM or template of which VMs are made, by name or by its path in the inventory.
    pub template: Option<String>,
    /// Where VMs are made.
    pub place: PlaceNames,
}

/// Where VMs are made, by names; what is not named is found where there is only one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceNames {
    /// The datacenter.
    pub datacenter: Option<String>,
    /// The cluster, or a host that is in none.
    pub cluster: Option<String>,
    /// The folder for VMs, by its path beneath the datacenter's or from the root (`/DC/vm/FOLDER`).
    pub folder: Option<String>,
    /// The resource pool.
    pub pool: Option<String>,
    /// The datastore.
    pub datastore: Option<String>,
    /// The only host that is used.
    pub host: Option<String>,
}

impl PlaceNames {
    /// The option of this name.
    fn option(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "datacenter" => Some(&mut self.datacenter),
            "cluster" => Some(&mut self.cluster),
            "folder" => Some(&mut self.folder),
            "pool" => Some(&mut self.pool),
            "datastore" => Some(&mut self.datastore),
            "host" => Some(&mut self.host),
            _ => None,
        }
    }
}

const FORM: &str =
    "write for example vsphere+https://user%40vsphere.local@vcenter.example/sdk?ca=/etc/vcenter.pem";

impl Address {
    /// Reads `vsphere+https://USER@HOST[:PORT][/PATH][?OPTIONS]`. Options are `ca=FILE`, `thumbprint=HEX`, `verify=no`,
    /// `password-file=FILE`, `template=NAME`, and those of [`PlaceNames`]. Without TLS (`vsphere+http`) only this machine is talked to.
    ///
    /// # Errors
    /// Why it is no address, with what to write. A password in it is not repeated.
    pub fn parse(text: &str) -> Result<Self, VsphereError> {
        Self::read(text).map_err(VsphereError::Settings)
    }

    fn read(text: &str) -> Result<Self, String> {
        let uri = Uri::parse(text).map_err(|_| format!("this is no address of a vSphere server: {FORM}"))?;
        let scheme = match uri.scheme().as_str() {
            "vsphere+https" => "https",
            "vsphere+http" => "http",
            other => return Err(format!("no vSphere server is reached by {other:?}: {FORM}")),
        };
        let authority = uri.authority().ok_or_else(|| format!("the address lacks a host: {FORM}"))?;
        let user = match authority.userinfo().map(|info| info.as_str()) {
            Some(info) if info.contains(':') => {
                return Err("a password in an address can be read by every user of this machine: leave it out, and give \
                            it in VIRTBENCH_VSPHERE_PASSWORD or in a file (?password-file=FILE)"
                    .to_owned());
            }
            Some(info) => decoded(info)?,
            None => return Err(format!("the address lacks a user: {FORM}")),
        };
        let name = authority.host();
        if name.is_empty() || user.is_empty() {
            return Err(format!("the address lacks a host or a user: {FORM}"));
        }
        let here = ["127.0.0.1", "[::1]", "localhost"].contains(&name);
        if scheme == "http" && !here {
            return Err(format!(
                "without TLS everybody on the way could read the password: write vsphere+https, {FORM}"
            ));
        }
        let host = match authority.port().map(|port| port.as_str()) {
            None | Some("") => name.to_owned(),
            Some(port) => {
                let port: u16 = port.parse().map_err(|_| format!("{port:?} is no port"))?;
                format!("{name}:{port}")
            }
        };
        let path = match uri.path().as_str() {
            "" | "/" => "/sdk",
            path => path,
        };
        let mut address = Self {
            url: format!("{scheme}://{host}{path}"),
            host,
            user,
            trust: Trust::System,
            password_file: None,
            template: None,
            place: PlaceNames::default(),
        };
        let query = uri.query().map_or("", |query| query.as_str());
        for (name, value) in options(query, &mut address.trust)? {
            address.take(&name, value)?;
        }
        Ok(address)
    }

    fn take(&mut self, name: &str, value: String) -> Result<(), String> {
        if let Some(place) = self.place.option(name).filter(|_| !value.is_empty()) {
            *place = Some(value);
            return Ok(());
        }
        match (name, value.as_str()) {
            ("password-file", file) if !file.is_empty() => self.password_file = Some(file.into()),
            ("template", template) if !template.is_empty() => self.template = Some(template.to_owned()),
            _ => {
                return Err(format!(
                    "an address has no option {name:?} with this value: ca=FILE, thumbprint=HEX, verify=no, \
                     password-file=FILE, template=NAME, datacenter=, cluster=, folder=, pool=, datastore=, host="
                ));
            }
        }
        Ok(())
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let text = EStr::<Query>::new(text).ok_or_else(|| format!("{text:?} cannot be decoded"))?;
    text.decode().to_string().map(Into::into).map_err(|_| "the address is not UTF-8".to_owned())
}

/// Neither options nor a password are shown.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = utf8_percent_encode(&self.user, &ENCODED);
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("https", &self.url));
        write!(f, "vsphere+{scheme}://{user}@{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_all_but_the_password() {
        let thumbprint = "AB:".repeat(31) + "CD";
        let text = format!(
            "vsphere+https://admin%40vsphere.local@vc.example:8443?thumbprint={thumbprint}&template=a%20b&cluster=C%201&folder=a/b"
        );
        let address = Address::parse(&text).unwrap();
        assert_eq!(
            (address.url.as_str(), address.user.as_str()),
            ("https://vc.example:8443/sdk", "admin@vsphere.local")
        );
        assert!(
            matches!(address.trust, Trust::Thumbprint(digest) if digest[0] == 0xAB && digest[31] == 0xCD)
        );
        assert_eq!(address.template.as_deref(), Some("a b"));
        assert_eq!(
            address.place,
            PlaceNames { cluster: Some("C 1".into()), folder: Some("a/b".into()), ..PlaceNames::default() }
        );
        assert_eq!(address.to_string(), "vsphere+https://admin%40vsphere.local@vc.example:8443/sdk");
        assert!(Address::parse("vsphere+http://u@127.0.0.1:80").is_ok());
    }

    #[test]
    fn what_is_no_address_is_refused_and_a_password_not_repeated() {
        let secret = Address::parse("vsphere+https://u:hunter2@h/sdk").unwrap_err().to_string();
        assert!(secret.contains("VIRTBENCH_VSPHERE_PASSWORD") && !secret.contains("hunter2"), "{secret}");
        for (text, word) in [
            ("", "no address"),
            ("https://u@h", "no vSphere server is reached"),
            ("vsphere+https://h", "lacks a user"),
            ("vsphere+https://u@", "lacks a host"),
            ("vsphere+http://u@h", "without TLS"),
            ("vsphere+https://u@h:99999", "no port"),
            ("vsphere+https://u@h?thumbprint=12", "64 hexadecimal digits"),
            ("vsphere+https://u@h?verify=yes", "no option"),
            ("vsphere+https://u@h?ca=a&verify=no", "once"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
