//! Whose a server or an image is: what is written on it, twice, and by which runs' servers, images and volumes are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{LeftRun, MarkedThing, Sign, now_s};
use virtbench_mark::{Mark, RunId};
use virtbench_openstack::{
    Address, FaultKind, Image, Limit, OpenStack, OpenStackError, Operation, OperationTimes, Server, Volume,
};
use virtbench_record::{FailureKind, Phase, Phases};

use crate::keeper::Keeper;
use crate::platform::Failure;
use crate::removal::{EACH, dead_among, remove_each};

/// What a server is for: its management is measured.
pub(super) const VM: &str = "vm";

/// What an image is for: it was made of a server.
pub(super) const SNAPSHOT: &str = "snapshot";

/// What a volume is for: it is attached to a server.
pub(super) const DISK: &str = "disk";

/// What an image is for: it has no bytes, and says that its run lives.
pub(super) const KEEPER: &str = "shared";

/// Under which name the mark stands among metadata and properties.
pub(super) const KEY: &str = "virtbench";

/// What a thing says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) mark: Mark,
    pub(super) name: String,
    /// The server that an image was made of.
    pub(super) server: Option<String>,
    pub(super) sign: Sign,
}

impl Owned {
    /// Of what this process makes now.
    pub(super) fn new(run: &RunId, purpose: &str, name: &str, server: Option<&str>) -> Self {
        let mut sign = Sign::now();
        sign.host.retain(|letter| !letter.is_whitespace());
        let server = server.map(str::to_owned);
        Self { mark: Mark::new(run.clone(), purpose), name: name.to_owned(), server, sign }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.mark.purpose() == purpose
    }

    /// What is written among metadata and properties.
    pub(super) fn text(&self) -> String {
        let server = self.server.as_ref().map(|server| format!(" server={server}")).unwrap_or_default();
        let sign: String =
            self.sign.attributes().iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} name={}{server}{sign}", self.mark, self.name)
    }

    /// The same, as metadata.
    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(KEY.to_owned(), self.text())])
    }

    /// What a server's description says: the mark and the name, without what changes.
    pub(super) fn description(&self) -> String {
        format!("{} name={}", self.mark, self.name)
    }

    fn parse(text: &str) -> Option<Self> {
        let (mark, words) = text.split_once(" name=")?;
        let words = format!("name={words}");
        let value = |name: &str| {
            let mut values = words.split(' ').filter_map(|word| word.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let (name, server) = (value("name")?.to_owned(), value("server").map(str::to_owned));
        Some(Self { mark: Mark::parse(mark)?, name, server, sign: Sign::read(value) })
    }

    /// Reads it from a server; nothing where virtbench did not make that server: its metadata and its description have to say the same.
    pub(super) fn of_server(server: &Server) -> Option<Self> {
        let owned = Self::parse(server.metadata.get(KEY)?)?;
        (server.description.as_deref() == Some(&owned.description())).then_some(owned)
    }

    /// Reads it from an image; nothing where virtbench did not make it. Images of a server that was made of ours have its property as well, and another
    /// name or server.
    pub(super) fn of_image(image: &Image) -> Option<Self> {
        let owned = Self::parse(image.virtbench.as_deref()?)?;
        let is_it = image.name == owned.name && image.instance_uuid == owned.server;
        is_it.then_some(owned)
    }

    /// Reads it from a volume; nothing where virtbench did not make it: its metadata and its description have to say the same.
    pub(super) fn of_volume(volume: &Volume) -> Option<Self> {
        let owned = Self::parse(volume.metadata.get(KEY)?)?;
        (volume.description.as_deref() == Some(&owned.description())).then_some(owned)
    }
}

/// How long a sign, or the end of the image, may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes the image.
pub(super) fn keeper(
    cloud: &Arc<OpenStack>,
    (label, run): (&str, &RunId),
    limit: Limit,
) -> Result<Keeper, Failure> {
    let mut owned = Owned::new(run, KEEPER, &format!("{label}.shared"), None);
    let image = cloud.make_empty_image(&owned.name, &owned.metadata(), limit).map_err(failure)?;
    let (signs, removes, signed) = (Arc::clone(cloud), Arc::clone(cloud), image.clone());
    let soon = || Limit::at(Instant::now() + LIMIT);
    let sign = move || {
        owned.sign.seen_s = now_s();
        signs.write_on_image(&signed, KEY, &owned.text(), soon()).map_err(failure)
    };
    Keeper::start(sign, move || {
        let (_, removed) = removes.perform("", &Operation::DeleteImage { image: &image }, soon());
        removed.map(drop).map_err(failure)
    })
}

/// Adds where the time of an operation went. Phases that were not reached stay unknown.
pub(super) fn add(phases: &mut Phases, times: &OperationTimes) {
    let reached = [
        (Phase::Client, Some(times.client), true),
        (Phase::Accepted, Some(times.accepted), true),
        (Phase::Queued, Some(times.scheduling), times.was_over),
        (Phase::Running, Some(times.running), times.was_over),
        (Phase::Done, Some(times.done), times.was_accepted),
        (Phase::Seen, times.seen, times.was_over),
    ];
    for (phase, length) in
        reached.into_iter().filter_map(|(phase, length, reached)| Some((phase, length.filter(|_| reached)?)))
    {
        phases.add(phase, nanoseconds(length));
    }
}

/// Results of calls as an operation's phases and failures.
pub(super) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn failure(error: OpenStackError) -> Failure {
    let kind = match &error {
        OpenStackError::Settings(_) => FailureKind::Refused,
        OpenStackError::Unreachable { .. } | OpenStackError::Tls { .. } => FailureKind::Unreachable,
        OpenStackError::Garbled { .. } => FailureKind::Garbled,
        OpenStackError::Late { .. } => FailureKind::TimedOut,
        OpenStackError::NotSeen { .. } => FailureKind::NotSeen,
        OpenStackError::Fault { fault, .. } => match fault.kind {
            FaultKind::NotAuthenticated => FailureKind::NotAuthenticated,
            FaultKind::Denied => FailureKind::Denied,
            FaultKind::NotFound => FailureKind::Vanished,
            FaultKind::Conflict => FailureKind::WrongState,
            FaultKind::RateLimited => FailureKind::Busy,
            FaultKind::Quota | FaultKind::NoValidHost => FailureKind::NoRoom,
            FaultKind::Server if matches!(fault.status, 502..=504) => FailureKind::Unreachable,
            FaultKind::Unsupported => FailureKind::Unsupported,
            FaultKind::Server | FaultKind::InvalidArgument | FaultKind::Other => FailureKind::Refused,
        },
    };
    Failure::new(kind, error.to_string())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ours_by_its_metadata_and_its_description() {
        let owned = Owned::new(&RunId::new_random(), VM, "virtbench-1", None);
        let server = |metadata: BTreeMap<String, String>, description: &str| Server {
            name: "renamed".into(),
            metadata,
            description: Some(description.into()),
            ..Server::default()
        };
        let (metadata, description) = (owned.metadata(), owned.description());
        assert!(owned.text().len() <= 255, "Nova's limit");
        assert_eq!(Owned::of_server(&server(metadata.clone(), &description)), Some(owned));
        assert_eq!(Owned::of_server(&server(metadata.clone(), "")), None, "metadata alone");
        assert_eq!(Owned::of_server(&server(BTreeMap::new(), &description)), None, "a description alone");
        let other = Owned::new(&RunId::new_random(), VM, "virtbench-1", None);
        assert_eq!(Owned::of_server(&server(metadata, &other.description())), None, "another run's");
    }

    #[test]
    fn a_volume_is_ours_by_its_metadata_and_its_description() {
        let owned = Owned::new(&RunId::new_random(), DISK, "virtbench-1.disk2", None);
        let volume = |description: &str| Volume {
            metadata: owned.metadata(),
            description: Some(description.into()),
            ..Volume::default()
        };
        assert_eq!(Owned::of_volume(&volume(&owned.description())), Some(owned.clone()));
        assert_eq!(Owned::of_volume(&volume("theirs")), None, "a copy of the metadata");
        assert_eq!(Owned::of_volume(&Volume { metadata: BTreeMap::new(), ..volume("") }), None);
    }

    #[test]
    fn an_image_is_ours_by_its_name_and_its_server_and_what_inherits_its_property_is_not() {
        let owned = Owned::new(&RunId::new_random(), SNAPSHOT, "virtbench-1.snap", Some("s1"));
        let image = |name: &str, server: Option<&str>| Image {
            name: name.into(),
            instance_uuid: server.map(str::to_owned),
            virtbench: Some(owned.text()),
            ..Image::default()
        };
        assert_eq!(Owned::of_image(&image("virtbench-1.snap", Some("s1"))), Some(owned.clone()));
        assert_eq!(Owned::of_image(&image("theirs", Some("s1"))), None);
        assert_eq!(Owned::of_image(&image("virtbench-1.snap", Some("s2"))), None, "of a server made of it");
        assert_eq!(Owned::of_image(&image("virtbench-1.snap", None)), None);
        assert_eq!(Owned::of_image(&Image::default()), None);
    }
}
