//! Connects to a cloud, and finds what servers are made of there.

use std::time::Instant;

use virtbench_lab::Label;
use virtbench_mark::{Owner, RunId};
use virtbench_openstack::{Address, Flavor, Image, Limit};
use virtbench_record::{FailureKind, PlatformFacts};

use super::owned::{failure, keeper, open, owned_things, remove};
use super::platform::{Made, OnOpenStack};
use crate::platform::{Failure, RunVms};

/// Names that an error lists at most.
const MOST_NAMES: usize = 20;

impl OnOpenStack {
    /// Whether this is an address of OpenStack's.
    ///
    /// # Errors
    /// Why not, with what to write.
    pub fn check(address: &str) -> Result<(), Failure> {
        Address::parse(address).map(drop).map_err(failure)
    }

    /// Connects to `openstack:CLOUD`, with a label that nothing has had before, and removes what killed runs have left. `network` is what servers are on
    /// where the address does not say: `none` or `auto`.
    ///
    /// # Errors
    /// The address makes no sense; there is no such cloud; it cannot be reached or trusted, refuses the user, or has no flavor, image or network of the
    /// name.
    pub fn connect(address: &str, network: &str, deadline: Instant) -> Result<Self, Failure> {
        let (cloud, address) = open(address, deadline)?;
        let limit = Limit::at(deadline);
        let swept =
            remove(&cloud, &address.to_string(), |owned| owned.mark.owner() == Owner::Gone, deadline)?;
        let flavors = cloud.flavors(limit).map_err(failure)?;
        let flavor = flavor(&flavors, address.flavor.as_deref(), "flavor=")?;
        let other_flavor = address.other_flavor.as_deref();
        let other_flavor = other_flavor.map(|name| self::flavor(&flavors, Some(name), "other-flavor="));
        let image = image(&cloud.images(limit).map_err(failure)?, address.image.as_deref())?;
        let wanted = address.network.as_deref().unwrap_or(network);
        let network = cloud.network(wanted, limit).map_err(failure)?;
        let hosts = cloud.hosts(limit).map_err(failure)?;
        let mut others = 0;
        cloud.each_server(limit, |_| others += 1).map_err(failure)?;
        others -= owned_things(&cloud, deadline)?.len().min(others);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut facts = PlatformFacts {
            address: address.to_string(),
            software: format!("OpenStack, Nova API {}", cloud.microversion()),
            hosts: count(hosts.unwrap_or(0)),
            others: count(others),
            notes: vec![
                format!(
                    "servers have the flavor {} ({} MiB), the image {} and the network {wanted}",
                    flavor.name, flavor.ram, image.name
                ),
                "the end of an operation is known to one look: how much earlier it may have ended stands beside it".to_owned(),
            ],
        };
        if let Some(gib) = address.volume_gib {
            if !cloud.has_volumes() {
                let why = "volume= in the address needs Cinder, and the catalogue has no service for volumes: leave it out";
                return Err(Failure::new(FailureKind::Refused, why));
            }
            facts.notes.push(format!("the first disks of servers are volumes of Cinder's, of {gib} GiB"));
        }
        if hosts.is_none() {
            facts.notes.push("hosts: unavailable: the role may not list services".to_owned());
        }
        if swept > 0 {
            facts
                .notes
                .push(format!("removed {swept} servers, images and volumes that killed runs had left there"));
        }
        let (label, run) = (Label::new().to_string(), RunId::new_random());
        let keeper = keeper(&cloud, (&label, &run), limit)?;
        let made = Made { flavor, other_flavor: other_flavor.transpose()?, image, network };
        Ok(Self { cloud, address, label, run, made, hosts, facts, ours: RunVms::default(), _keeper: keeper })
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if names.is_empty() { "none".to_owned() } else { format!("{}{more}", names.join(", ")) }
}

/// The flavor of this name or id, or the only one.
fn flavor(flavors: &[Flavor], wanted: Option<&str>, option: &str) -> Result<Flavor, Failure> {
    let found = match wanted {
        Some(wanted) => flavors.iter().find(|flavor| flavor.name == wanted || flavor.id == wanted),
        None => flavors.first().filter(|_| flavors.len() == 1),
    };
    found.cloned().ok_or_else(|| {
        let names = listed(flavors.iter().map(|flavor| flavor.name.as_str()));
        let why = match wanted {
            Some(wanted) => {
                format!("there is no flavor {wanted:?}: there are {names}; see {option} in the address")
            }
            None => format!("what do servers have? Add {option}NAME to the address: there are {names}"),
        };
        Failure::new(FailureKind::Refused, why)
    })
}

/// The image of this name or id, or the only one.
fn image(images: &[Image], wanted: Option<&str>) -> Result<Image, Failure> {
    let all: Vec<&Image> = match wanted {
        Some(wanted) => images.iter().filter(|image| image.name == wanted || image.id == wanted).collect(),
        None => images.iter().collect(),
    };
    if let [image] = all[..] {
        return Ok(image.clone());
    }
    let names = listed(images.iter().map(|image| image.name.as_str()));
    let why = match wanted {
        Some(wanted) if all.is_empty() => {
            format!("there is no active image {wanted:?}: there are {names}; see image= in the address")
        }
        Some(wanted) => format!("several images are named {wanted:?}: give the id in image= of the address"),
        None => format!("what do disks begin with? Add image=NAME to the address: there are {names}"),
    };
    Err(Failure::new(FailureKind::Refused, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_are_made_of_is_named_or_the_only_one() {
        let flavors: Vec<Flavor> = ["tiny", "small"]
            .map(|name| Flavor { name: name.into(), id: format!("id-{name}"), ..Flavor::default() })
            .into();
        let found = |wanted| flavor(&flavors, wanted, "flavor=").map(|flavor| flavor.name);
        assert_eq!((found(Some("tiny")), found(Some("id-small"))), (Ok("tiny".into()), Ok("small".into())));
        assert!(found(Some("large")).unwrap_err().message.contains("small, tiny"));
        assert!(found(None).unwrap_err().message.contains("flavor=NAME"));
        assert!(flavor(&flavors[..1], None, "flavor=").is_ok());
        let images: Vec<Image> =
            ["a", "a", "b"].map(|name| Image { name: name.into(), ..Image::default() }).into();
        assert!(image(&images, Some("b")).is_ok());
        assert!(image(&images, Some("a")).unwrap_err().message.contains("several images"));
        assert!(image(&images, None).unwrap_err().message.contains("image=NAME"));
        assert!(image(&[], Some("a")).unwrap_err().message.contains("there are none"));
    }
}
