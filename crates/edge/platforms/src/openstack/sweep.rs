//! Removes servers, images and volumes that say that a run made them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use virtbench_lab::{LeftRun, MarkedThing};
use virtbench_mark::RunId;
use virtbench_openstack::{Address, FaultKind, Limit, OpenStack, OpenStackError, Operation};

use super::owned::{Owned, failure};
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, remove_each};

/// Things that are removed at once.
const AT_ONCE: usize = 4;

/// A server, an image or a volume that carries a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    Server(String),
    Image(String),
    Volume(String),
}

/// Connects and logs in.
pub(super) fn open(address: &str, deadline: Instant) -> Result<(Arc<OpenStack>, Address), Failure> {
    let address = Address::parse(address).map_err(failure)?;
    let cloud = OpenStack::connect(&address, Limit::at(deadline)).map_err(failure)?;
    Ok((Arc::new(cloud), address))
}

/// The runs that have something there.
///
/// # Errors
/// The address makes no sense, or the cloud cannot be reached or refuses.
pub(crate) fn runs_on(address: &str, deadline: Instant) -> Result<Vec<LeftRun>, Failure> {
    runs_of(&open(address, deadline)?.0, deadline)
}

fn runs_of(cloud: &OpenStack, deadline: Instant) -> Result<Vec<LeftRun>, Failure> {
    Ok(LeftRun::gather(owned_things(cloud, deadline)?.into_iter().map(
        |(thing, Owned { mark, sign, name, .. })| {
            let shown = match thing {
                Thing::Server(id) => format!("{name} (server {id})"),
                Thing::Image(id) => format!("{name} (image {id})"),
                Thing::Volume(id) => format!("{name} (volume {id})"),
            };
            MarkedThing { mark, sign, guest_runs: false, names: vec![shown] }
        },
    )))
}

/// Removes what those of these runs have left that are thought dead; how many things.
///
/// # Errors
/// As for [`runs_on`], or something cannot be removed.
pub(crate) fn remove_dead(
    address: &str,
    runs: &BTreeSet<RunId>,
    deadline: Instant,
) -> Result<usize, Failure> {
    let (cloud, parsed) = open(address, deadline)?;
    let dead = dead_among(runs_of(&cloud, deadline)?, runs);
    remove(&cloud, &parsed.to_string(), |owned| dead.contains(&owned.mark.run), deadline)
}

/// What virtbench made in the project: servers first, since images and volumes may be in use by them.
pub(super) fn owned_things(cloud: &OpenStack, deadline: Instant) -> Result<Vec<(Thing, Owned)>, Failure> {
    let (limit, mut things) = (Limit::at(deadline), Vec::new());
    let servers = cloud.each_server(limit, |server| {
        things.extend(Owned::of_server(&server).map(|owned| (Thing::Server(server.id), owned)));
    });
    servers.map_err(failure)?;
    let images = cloud.each_image(limit, |image| {
        things.extend(Owned::of_image(&image).map(|owned| (Thing::Image(image.id), owned)));
    });
    images.map_err(failure)?;
    let volumes = cloud.each_volume(limit, |volume| {
        things.extend(Owned::of_volume(&volume).map(|owned| (Thing::Volume(volume.id), owned)));
    });
    volumes.map_err(failure)?;
    Ok(things)
}

/// Removes the things that this is true of; how many.
pub(super) fn remove(
    cloud: &OpenStack,
    address: &str,
    whose: impl Fn(&Owned) -> bool,
    deadline: Instant,
) -> Result<usize, Failure> {
    let owned = owned_things(cloud, deadline)?;
    let wanted = owned.into_iter().filter(|(_, owned)| whose(owned)).map(|(thing, _)| thing);
    let (servers, others): (Vec<Thing>, Vec<Thing>) =
        wanted.partition(|thing| matches!(thing, Thing::Server(_)));
    let mut removed = 0;
    // After their servers: an image may still be made of one, and a volume be attached to it.
    for things in [servers, others] {
        remove_each(&things, (AT_ONCE, deadline), address, &mut removed, |thing, until| {
            remove_one(cloud, thing, Limit::at(until)).map_err(failure)
        })?;
    }
    Ok(removed)
}

/// One that a task holds is waited for; one that is gone is removed. It is looked at once more before: it may be another's by now.
fn remove_one(cloud: &OpenStack, thing: &Thing, limit: Limit) -> Result<(), OpenStackError> {
    let mut pauses = crate::removal::pauses();
    loop {
        let removed = match thing {
            Thing::Server(id) => match cloud.server(id, limit)? {
                Some(server) if Owned::of_server(&server).is_some() => {
                    cloud.perform(id, &Operation::Delete, limit).1
                }
                _ => return Ok(()),
            },
            Thing::Image(id) => match cloud.image(id, limit)? {
                Some(image) if Owned::of_image(&image).is_some() => {
                    cloud.perform("", &Operation::DeleteImage { image: id }, limit).1
                }
                _ => return Ok(()),
            },
            Thing::Volume(id) => match cloud.volume(id, limit)? {
                Some(volume) if Owned::of_volume(&volume).is_some() => {
                    cloud.perform("", &Operation::DeleteVolume { volume: id }, limit).1
                }
                _ => return Ok(()),
            },
        };
        let pause = pauses.next().unwrap_or(EACH);
        match removed {
            Err(error) if error.fault() == Some(FaultKind::NotFound) => return Ok(()),
            Err(error) if error.fault() == Some(FaultKind::Conflict) && limit.left() > pause => {
                thread::sleep(pause);
            }
            done => return done.map(drop),
        }
    }
}
