//! Where members are that run on machines of somebody else's.

use virtbench_users::Address;

use crate::environments::{ClusterGuest, is_cluster};

/// The setting of a template's address that says where its service listens.
const SERVICE_PORT: &str = "service-port=";

/// Where a member of each tile is.
#[derive(Debug)]
pub(super) enum MemberAt {
    /// At an address for each tile, in words: `HOST` or `HOST:PORT`.
    Addresses(Vec<String>),
    /// In a VM for each tile, made of a template of a cluster or an image of a cloud that has its software in it.
    Template(Box<Template>),
}

/// What VMs are made of, and where their service listens, if not at the recipe's port.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) guest: ClusterGuest,
    pub(super) port: Option<u16>,
}

impl MemberAt {
    /// Reads what a tile's file has.
    ///
    /// # Errors
    /// One is no address, or a template stands among others; in words.
    pub(super) fn parse(at: &[String]) -> Result<Self, String> {
        let Some(text) = at.iter().find(|text| is_cluster(text)) else {
            return at
                .iter()
                .try_for_each(|text| Address::parse(text, 1).map(drop))
                .map(|()| Self::Addresses(at.to_vec()));
        };
        if at.len() > 1 {
            return Err(format!("{text} is a template of which each tile has a VM: name it alone"));
        }
        let (server, query) = text.split_once('?').unwrap_or((text, ""));
        let (ports, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|one| !one.is_empty()).partition(|one| one.starts_with(SERVICE_PORT));
        let port = ports.first().map(|port| {
            port[SERVICE_PORT.len()..].parse().map_err(|_| format!("{server}: {port}: no such port"))
        });
        let guest = ClusterGuest::parse(&format!("{server}?{}", others.join("&")))?;
        Ok(Self::Template(Box::new(Template { guest, port: port.transpose()? })))
    }

    /// How many tiles it is enough for.
    pub(super) fn tiles(&self) -> u32 {
        match self {
            Self::Addresses(addresses) => u32::try_from(addresses.len()).unwrap_or(u32::MAX),
            Self::Template(_) => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_enough_for_all_tiles_and_addresses_for_one_each() {
        let of = |texts: &[&str]| {
            MemberAt::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["10.0.0.1", "10.0.0.2:6380"]).unwrap().tiles(), 2);
        let template = of(&["proxmox:pve?template=redis&service-port=6380&node=one"]).unwrap();
        assert_eq!(template.tiles(), u32::MAX);
        let MemberAt::Template(template) = template else { panic!("{template:?}") };
        assert_eq!(template.port, Some(6380));
        assert!(template.guest.to_string().contains("template=redis&node=one"), "{}", template.guest);
        for (texts, word) in [
            (&["10.0.0.1:x"][..], "no address"),
            (&["proxmox:pve?template=redis", "10.0.0.1"], "name it alone"),
            (&["proxmox:pve"], "template"),
            (&["openstack:here"], "flavor"),
            (&["proxmox:pve?template=redis&service-port=x"], "no such port"),
        ] {
            let why = of(texts).unwrap_err();
            assert!(why.contains(word), "{texts:?}: {why}");
        }
    }
}
