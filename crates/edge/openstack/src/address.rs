//! Which cloud, and what servers there are made of.

use std::fmt;
use std::path::PathBuf;

use virtbench_https::{Trust, options};

use crate::error::OpenStackError;

const FORM: &str = "write for example openstack:mycloud?flavor=m1.tiny&image=cirros&network=private, where clouds.yaml has mycloud";
const OPTIONS: &str = "flavor=, other-flavor=, image=, volume=GIB, network=, key=, security-group=, region=, interface=, zone=, clouds=FILE, ca=FILE, thumbprint=HEX, verify=no";

/// A volume has at most so many GiB, as a guard against a slip.
const MOST_GIB: u64 = 16_384;

/// A cloud, as an address names it. Its credentials are in clouds.yaml or in `OS_...` variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// Its name in clouds.yaml; empty for that of `OS_CLOUD`, or the one that `OS_AUTH_URL` and others describe.
    pub cloud: String,
    /// Another file than clouds.yaml, with a secure.yaml beside it.
    pub clouds: Option<PathBuf>,
    /// Whom to believe that it is the server, where clouds.yaml does not say.
    pub trust: Trust,
    /// What servers have of processors, memory and disk, by name or id.
    pub flavor: Option<String>,
    /// What they are resized to and back.
    pub other_flavor: Option<String>,
    /// What their disks begin with, by name or id.
    pub image: Option<String>,
    /// Where their first disks are volumes of Cinder's: the GiB of each.
    pub volume_gib: Option<u64>,
    /// Their network by name or id, `none`, or `auto`.
    pub network: Option<String>,
    /// Nova's key pair that their guests let in, by name.
    pub key: Option<String>,
    /// The security group that they are in, in place of the default one.
    pub security_group: Option<String>,
    /// The region, where clouds.yaml does not say or another is wanted.
    pub region: Option<String>,
    /// `public`, `internal` or `admin`: which of the catalogue's endpoints.
    pub interface: Option<String>,
    /// The availability zone in which servers are made.
    pub zone: Option<String>,
}

impl Address {
    /// How every address begins.
    pub const PREFIX: &str = "openstack:";

    /// Reads `openstack:[CLOUD][?OPTIONS]`.
    ///
    /// # Errors
    /// Why it is no address, with what to write.
    pub fn parse(text: &str) -> Result<Self, OpenStackError> {
        Self::read(text).map_err(OpenStackError::Settings)
    }

    fn read(text: &str) -> Result<Self, String> {
        let rest =
            text.strip_prefix(Self::PREFIX).ok_or_else(|| format!("this is no OpenStack cloud: {FORM}"))?;
        let (cloud, query) = rest.split_once('?').unwrap_or((rest, ""));
        if cloud.contains(['@', ':', '/']) || cloud.contains(char::is_whitespace) {
            return Err(format!(
                "a cloud is named as clouds.yaml names it; its address, user and password are there, or in OS_AUTH_URL, OS_USERNAME, \
                 OS_PASSWORD and so on: {FORM}"
            ));
        }
        let mut address = Self { cloud: cloud.to_owned(), ..Self::default() };
        for (name, value) in options(query, &mut address.trust)? {
            address.take(&name, value)?;
        }
        Ok(address)
    }

    fn take(&mut self, name: &str, value: String) -> Result<(), String> {
        let field = match name {
            "flavor" => &mut self.flavor,
            "other-flavor" => &mut self.other_flavor,
            "image" => &mut self.image,
            "network" => &mut self.network,
            "key" => &mut self.key,
            "security-group" => &mut self.security_group,
            "region" => &mut self.region,
            "zone" => &mut self.zone,
            "clouds" if !value.is_empty() => {
                self.clouds = Some(value.into());
                return Ok(());
            }
            "volume" => {
                let gib = value.parse().ok().filter(|gib| (1..=MOST_GIB).contains(gib));
                let why =
                    || format!("volume= is how many GiB the first disk of a server has, 1 to {MOST_GIB}");
                self.volume_gib = Some(gib.ok_or_else(why)?);
                return Ok(());
            }
            "interface" if matches!(value.as_str(), "public" | "internal" | "admin") => &mut self.interface,
            _ => return Err(no_option(name)),
        };
        if value.is_empty() {
            return Err(no_option(name));
        }
        *field = Some(value);
        Ok(())
    }
}

fn no_option(name: &str) -> String {
    format!("an OpenStack address has no option {name:?} with this value: {OPTIONS}")
}

/// Neither the file of clouds nor whom to trust is shown.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.cloud)?;
        let volume_gib = self.volume_gib.map(|gib| gib.to_string());
        let shown = [
            ("flavor", &self.flavor),
            ("other-flavor", &self.other_flavor),
            ("image", &self.image),
            ("volume", &volume_gib),
            ("network", &self.network),
            ("key", &self.key),
            ("security-group", &self.security_group),
            ("region", &self.region),
            ("interface", &self.interface),
            ("zone", &self.zone),
        ];
        let shown = shown.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        for (index, (name, value)) in shown.enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_openstack_names_a_cloud_and_what_servers_are_made_of() {
        let text = "openstack:lab?flavor=m1.tiny&image=my%20image&network=none&verify=no&interface=internal";
        let address = Address::parse(text).unwrap();
        assert_eq!((address.cloud.as_str(), address.image.as_deref()), ("lab", Some("my image")));
        assert_eq!(address.trust, Trust::Anybody);
        assert_eq!(
            address.to_string(),
            "openstack:lab?flavor=m1.tiny&image=my image&network=none&interface=internal"
        );
        assert_eq!(Address::parse("openstack:").unwrap(), Address::default());
        let volumes = Address::parse("openstack:lab?volume=10").unwrap();
        assert_eq!((volumes.volume_gib, volumes.to_string().as_str()), (Some(10), "openstack:lab?volume=10"));
    }

    #[test]
    fn what_is_no_address_of_openstack_is_refused_with_what_to_write() {
        for (text, word) in [
            ("", "no OpenStack cloud"),
            ("openstack:https://h:5000/v3", "as clouds.yaml names it"),
            ("openstack:me:hunter2@h", "as clouds.yaml names it"),
            ("openstack:c?flavour=x", "no option \"flavour\""),
            ("openstack:c?image=", "no option"),
            ("openstack:c?interface=secret", "no option"),
            ("openstack:c?ca=a&verify=no", "once"),
            ("openstack:c?volume=0", "how many GiB"),
            ("openstack:c?volume=x", "how many GiB"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
