//! What a domain's network interface is on.

use std::fmt;

use quick_xml::escape::escape;

/// What libvirt's own tools take where no network is named.
const DEFAULT: &str = "default";

/// What a domain's network interface is on: there it gets its address by DHCP, and there its clients reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainNetwork {
    /// A network of libvirt's, by its name.
    Network(String),
    /// A bridge of the hypervisor's machine.
    Bridge(String),
}

impl DomainNetwork {
    /// Reads what an address of a hypervisor says beside its pool: `network=NAME` or `bridge=NAME`, else libvirt's default network.
    ///
    /// # Errors
    /// It says something else, in words.
    pub fn parse(settings: &[(String, String)]) -> Result<Self, String> {
        let mut found = None;
        for (name, value) in settings {
            let network = match name.as_str() {
                "network" => Self::Network(value.clone()),
                "bridge" => Self::Bridge(value.clone()),
                _ => return Err(format!("{name}={value}: pool, and network or bridge, can be set")),
            };
            if value.is_empty() {
                return Err(format!("{name}= names none"));
            }
            if found.replace(network).is_some() {
                return Err("network and bridge: name one of both, once".into());
            }
        }
        Ok(found.unwrap_or_else(|| Self::Network(DEFAULT.into())))
    }

    /// The element of the interface.
    pub(super) fn xml(&self) -> String {
        let (kind, name) = match self {
            Self::Network(name) => ("network", name),
            Self::Bridge(name) => ("bridge", name),
        };
        // Without a program to boot from the network: it would cost time at every start.
        format!(
            "    <interface type='{kind}'><source {kind}='{}'/><model type='virtio'/><rom enabled='no'/></interface>\n",
            escape(name)
        )
    }
}

impl fmt::Display for DomainNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(name) => write!(f, "network {name}"),
            Self::Bridge(name) => write!(f, "bridge {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_named_once_and_else_is_libvirts_default() {
        let parse = |settings: &[(&str, &str)]| {
            let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            DomainNetwork::parse(&owned.collect::<Vec<_>>())
        };
        assert_eq!(parse(&[]), Ok(DomainNetwork::Network("default".into())));
        assert_eq!(parse(&[("bridge", "br0")]), Ok(DomainNetwork::Bridge("br0".into())));
        for (settings, word) in [
            (&[("vcpus", "2")][..], "pool, and network or bridge"),
            (&[("bridge", "")][..], "names none"),
            (&[("bridge", "a"), ("network", "b")][..], "one of both"),
        ] {
            assert!(parse(settings).unwrap_err().contains(word), "{settings:?}");
        }
    }
}
