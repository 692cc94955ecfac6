//! So many tiles that stand at once: what their members are made of, and run on.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_appliance::DataSet;
use virtbench_lab::{ApplianceError, ApplianceSpec, Network, Reach, RunningAppliance, TierLinks};
use virtbench_platforms::{MadeVm, VmTemplate};
use virtbench_recipe::Recipe;
use virtbench_record::{ApplianceFacts, ApplianceSide, GuestFacts, TilesPlan};
use virtbench_users::Address;

use super::host::{HostAppliances, TilesFailure, TilesHosting, TilesPlace, more_than_all, tile_count};
use super::tile_member::TileMember;
use super::uses::{MemberAt, Template, stages, uses};
use crate::appliances::joined::joined;
use crate::appliances::place::{network, place, processors_of};
use crate::disks::disk::StudyFolder;
use crate::disks::served::Served;
use crate::runner::progress::{Progress, nanoseconds};
use crate::studies::application::{DataDisks, DataPlace};
use crate::study_error::StudyError;

/// What members stand on.
pub(super) struct Stands {
    /// Of a VM, if they are VMs.
    pub(super) guest: Option<GuestFacts>,
    /// What to note of who runs them.
    pub(super) notes: Vec<String>,
}

/// Tiles that stand. They end with this, before their data go.
pub(super) struct Standing {
    /// Tile by tile, in the plan's order.
    pub(super) members: Vec<StandingMember>,
    /// From the first start until all were ready, in nanoseconds.
    pub(super) ready_ns: u64,
    _data: Option<Data>,
    pub(super) folder: StudyFolder,
}

impl Standing {
    /// Copies the data and starts all members, as many at a time as the host has processors, each after those that it uses.
    pub(super) fn start(
        plan: &TilesPlan,
        members: &mut [TileMember],
        place: &TilesPlace,
        tiles: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Self, TilesFailure> {
        let folder = StudyFolder::make(&place.parent, &place.name).map_err(StudyError::from)?;
        if let Some(recipes) = &place.existing {
            return Self::find(plan, recipes, tiles, folder, progress);
        }
        let mut materials = Materials::gather(plan, members, place, tiles, &folder, progress)?;
        progress.doing(&format!(
            "{}: starting {} members",
            tile_count(tiles),
            members.len() * tiles as usize
        ));
        let begun = Instant::now();
        let mut standing: Vec<StandingMember> = Vec::new();
        for stage in stages(&plan.members) {
            let mut wanted: Vec<MemberSpec> = Vec::new();
            for tile in 1..=tiles {
                for number in &stage {
                    let spec = materials.spec(&members[*number], (tile, *number), &standing)?;
                    wanted.push((tile, *number, spec));
                }
            }
            let start = |(tile, place, spec): &MemberSpec| {
                // What a path costs is in what the generators see.
                let appliance = RunningAppliance::start_unmeasured(spec).map_err(|error| {
                    TilesFailure::member(*tile, &plan.members[*place].name, error.to_string())
                })?;
                let machine = MemberMachine::Started(Box::new(appliance));
                Ok(StandingMember { tile: *tile, place: *place, machine })
            };
            standing.append(&mut start_all(&wanted, progress.stop, start)?);
        }
        standing.sort_by_key(|one| (one.tile, one.place));
        let data = Some(materials.into_data());
        Ok(Self { members: standing, ready_ns: nanoseconds(begun.elapsed()), _data: data, folder })
    }

    /// Finds the members of the first so many tiles where they are, or makes them of their templates. Who is not there is no sign of how many
    /// fit.
    fn find(
        plan: &TilesPlan,
        recipes: &[Recipe],
        tiles: u32,
        folder: StudyFolder,
        progress: &mut Progress<'_>,
    ) -> Result<Self, TilesFailure> {
        progress.doing(&format!("{}: looking for the members", tile_count(tiles)));
        let begun = Instant::now();
        let failed = |tile: u32, name: &str, why: String| {
            StudyError::Environment(format!("{name} of tile {tile}: {why}").into())
        };
        let mut wanted: Vec<(u32, usize, MemberAt)> = Vec::new();
        for tile in 1..=tiles {
            for (place, member) in plan.members.iter().enumerate() {
                let at = MemberAt::parse(&member.at).map_err(|why| failed(tile, &member.name, why))?;
                wanted.push((tile, place, at));
            }
        }
        // One that stands by may be without an address.
        wanted.retain(|(tile, _, at)| *tile <= at.tiles());
        let stop = progress.stop;
        let mut members = start_all(&wanted, stop, |(tile, place, at)| {
            let (member, recipe) = (&plan.members[*place], &recipes[*place]);
            let found = match at {
                MemberAt::Addresses(addresses) => {
                    ExistingMember::find(&addresses[*tile as usize - 1], recipe, member.vcpus)
                }
                MemberAt::Template(template) => ExistingMember::make(template, recipe, member.vcpus, stop),
            };
            let machine =
                found.map_err(|why| failed(*tile, &member.name, why)).map(MemberMachine::Existing)?;
            Ok(StandingMember { tile: *tile, place: *place, machine })
        })?;
        members.sort_by_key(|one| (one.tile, one.place));
        Ok(Self { members, ready_ns: nanoseconds(begun.elapsed()), _data: None, folder })
    }

    /// What the first one stands on, where this run has started it.
    pub(super) fn stands(&self, place: &TilesPlace) -> Option<Stands> {
        let facts = self.members.first()?.machine.facts()?;
        Some(match place.hosting.as_ref().and_then(TilesHosting::prepared) {
            Some(host) => Stands { guest: host.guest_facts(facts), notes: host.notes() },
            None => {
                Stands { guest: place.guests.as_ref().map(|guests| guests.facts(facts)), notes: Vec::new() }
            }
        })
    }

    /// Who has ended, and why, if anybody has.
    pub(super) fn crashed(&mut self, plan: &TilesPlan) -> Option<TilesFailure> {
        self.members.iter_mut().find_map(|one| {
            let why = one.machine.crashed()?;
            Some(TilesFailure::member(one.tile, &plan.members[one.place].name, why))
        })
    }
}

/// Who is to be started: tile, place in the plan, and what it is.
type MemberSpec = (u32, usize, ApplianceSpec);

/// What came of the starts so far.
#[derive(Default)]
struct Starts {
    standing: Vec<StandingMember>,
    failure: Option<TilesFailure>,
}

/// Starts all, as many at a time as the host has processors. None is started any more after one that fails.
fn start_all<W: Sync>(
    wanted: &[W],
    stop: &AtomicBool,
    start: impl Fn(&W) -> Result<StandingMember, TilesFailure> + Sync,
) -> Result<Vec<StandingMember>, TilesFailure> {
    let (next, starts) = (AtomicUsize::new(0), Mutex::new(Starts::default()));
    let held = || starts.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some(one) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) || held().failure.is_some() {
                return;
            }
            match start(one) {
                Ok(member) => held().standing.push(member),
                Err(failure) => {
                    held().failure.get_or_insert(failure);
                }
            }
        }
    };
    let at_once = thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    let Starts { standing, failure } = starts.into_inner().unwrap_or_else(PoisonError::into_inner);
    if stop.load(Ordering::Relaxed) {
        return Err(StudyError::Stopped.into());
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    Ok(standing)
}

/// What members' machines work on. It has to stay for as long as they run.
pub(super) struct Data {
    /// Of each member of each tile, a copy, or what another machine copies; nothing for one without data.
    paths: Vec<Option<PathBuf>>,
    /// The copies, which go with this.
    _copies: Option<DataDisks>,
}

/// What the members of so many tiles are made of.
pub(super) struct Materials<'a> {
    plan: &'a TilesPlan,
    place: &'a TilesPlace,
    data: Data,
    /// The machine of the user's that runs them; nothing where this host does.
    elsewhere: Option<HostAppliances>,
    /// How each is reached, and reaches others, tile by tile.
    ways: Vec<(Network, TierLinks)>,
}

impl<'a> Materials<'a> {
    /// Copies the data, or sends everything to the machine that runs members, and makes networks.
    pub(super) fn gather(
        plan: &'a TilesPlan,
        members: &mut [TileMember],
        place: &'a TilesPlace,
        tiles: u32,
        folder: &StudyFolder,
        progress: &mut Progress<'_>,
    ) -> Result<Self, TilesFailure> {
        let preparing: Vec<_> = members.iter().map(|member| member.preparing(members)).collect();
        let roots: Vec<PathBuf> = members.iter().map(TileMember::image).collect();
        let mut sets: Vec<Option<&DataSet>> = Vec::new();
        for (member, by) in members.iter_mut().zip(&preparing) {
            sets.push(member.data(by.as_ref(), progress)?);
        }
        let of_all = || sets.iter().copied().cycle().take(sets.len() * tiles as usize);
        let (data, elsewhere) = match &place.hosting {
            Some(hosting) => {
                let paths: Vec<Option<PathBuf>> = of_all().map(|set| set.map(DataSet::image)).collect();
                let files: Vec<PathBuf> = roots.into_iter().chain(paths.iter().flatten().cloned()).collect();
                let host = hosting.with(&files, progress)?;
                if let Some(why) = more_than_all(plan, tiles, host.memory_bytes()) {
                    return Err(TilesFailure::failed(why));
                }
                (Data { paths, _copies: None }, Some(host))
            }
            None => {
                progress.doing(&format!("{}: copying data", tile_count(tiles)));
                let sets: Vec<Option<&DataSet>> = of_all().collect();
                let copies = DataDisks::make(&DataPlace::File, folder.path(), &sets, progress)?;
                (Data { paths: copies.paths.clone(), _copies: Some(copies) }, None)
            }
        };
        let mut ways = Vec::new();
        for _ in 1..=tiles {
            ways.append(&mut ways_of_a_tile(plan, elsewhere.is_some())?);
        }
        Ok(Self { plan, place, data, elsewhere, ways })
    }

    /// A member of a tile, from 1, at this place in the plan, beside those that stand already. Once for each.
    pub(super) fn spec(
        &mut self,
        member: &TileMember,
        (tile, at): (u32, usize),
        standing: &[StandingMember],
    ) -> Result<ApplianceSpec, StudyError> {
        let (plan, own) = (self.plan, member.plan());
        let number = (tile as usize - 1) * plan.members.len() + at;
        let (network, mut tiers) = std::mem::take(&mut self.ways[number]);
        let name = format!("{} of tile {tile}", own.name);
        let (vcpus, memory_bytes) = (own.vcpus, own.memory_bytes);
        let place = match &self.elsewhere {
            Some(host) => {
                name_used(plan, standing, (tile, at), &mut tiers);
                host.place()
            }
            None => {
                let side = ApplianceSide { name: name.clone(), vm: plan.vm, vcpus, memory_bytes };
                place(self.place.guests.as_ref(), &side)?
            }
        };
        // Natively here members are dealt to processors in turn, and held to as many as they have. Another machine deals its own,
        // and a VM has threads for its processors, which the scheduler places.
        let is_native_here = !plan.vm && self.elsewhere.is_none();
        let processors = if is_native_here { processors_of(number, vcpus)? } else { Vec::new() };
        Ok(ApplianceSpec {
            name,
            recipe: member.recipe().clone(),
            root: member.image(),
            data: self.data.paths.get(number).cloned().flatten(),
            vcpus,
            memory_bytes,
            network,
            tiers,
            processors,
            place,
        })
    }

    /// The data alone, once all have started.
    pub(super) fn into_data(self) -> Data {
        self.data
    }
}

/// How the members of a tile are reached, and reach each other. On another machine all are on one network.
fn ways_of_a_tile(plan: &TilesPlan, are_elsewhere: bool) -> Result<Vec<(Network, TierLinks)>, StudyError> {
    let count = plan.members.len();
    if are_elsewhere {
        return Ok((0..count).map(|_| Default::default()).collect());
    }
    let failed = |error: ApplianceError| StudyError::Environment(error.into());
    let mut ways = joined(count, &uses(&plan.members), plan.vm).map_err(failed)?;
    for way in ways.iter_mut().filter(|_| plan.vm) {
        // A network each, so that members may have the same ports.
        way.0 = network(&plan.network).map_err(failed)?;
    }
    Ok(ways)
}

/// Has a member reach those of its tile that it uses, at the addresses that they have got.
fn name_used(
    plan: &TilesPlan,
    standing: &[StandingMember],
    (tile, place): (u32, usize),
    links: &mut TierLinks,
) {
    for one in uses(&plan.members).iter().filter(|one| one.from == place) {
        let used = standing.iter().find(|other| (other.tile, other.place) == (tile, one.to));
        if let Some(address) = used.and_then(|used| used.machine.shared_address()) {
            links.name(&one.name, address);
        }
    }
}

/// What a member of a tile runs on.
pub(super) enum MemberMachine {
    /// An appliance of this run.
    Started(Box<RunningAppliance>),
    /// It was there before, and is left alone.
    Existing(ExistingMember),
}

impl MemberMachine {
    /// What its generator has to know.
    pub(super) fn served(&self) -> &dyn Served {
        match self {
            Self::Started(appliance) => &**appliance,
            Self::Existing(existing) => existing,
        }
    }

    /// What it stands on, where this run has started it.
    pub(super) fn facts(&self) -> Option<&ApplianceFacts> {
        match self {
            Self::Started(appliance) => Some(appliance.facts()),
            Self::Existing(_) => None,
        }
    }

    /// The address by which others of its tile reach it, where they share a network.
    pub(super) fn shared_address(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Started(appliance) => appliance.shared_address(),
            Self::Existing(_) => None,
        }
    }

    /// Why it has ended, if it has. Of one that was there before only its generator tells.
    pub(super) fn crashed(&mut self) -> Option<String> {
        match self {
            Self::Started(appliance) => appliance.crashed().map(|error| error.to_string()),
            Self::Existing(_) => None,
        }
    }

    /// Processor time of the thread that carries its network on this host, in nanoseconds.
    pub(super) fn network_thread_ns(&self) -> Option<u64> {
        match self {
            Self::Started(appliance) => appliance.network_thread_ns(),
            Self::Existing(_) => None,
        }
    }
}

/// A member that runs.
pub(super) struct StandingMember {
    /// Which tile, from 1.
    pub(super) tile: u32,
    /// Its place in the plan's members.
    pub(super) place: usize,
    pub(super) machine: MemberMachine,
}

/// How long the service of a VM that was made may take to answer.
const SERVICE_LIMIT: Duration = Duration::from_secs(300);

/// How long one waits between attempts.
const SERVICE_PAUSE: Duration = Duration::from_millis(500);

/// How long a machine may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A member that is there already.
#[derive(Debug)]
pub(super) struct ExistingMember {
    /// The recipe's ports, and where each is.
    addresses: Vec<(u16, SocketAddr)>,
    processors: u32,
    /// The VM that was made for it, if one was. It goes with the member.
    _vm: Option<MadeVm>,
}

impl ExistingMember {
    /// Finds the services of a recipe at `HOST`, or at `HOST:PORT` where the first of them listens elsewhere, and looks whether that
    /// one takes connections.
    ///
    /// # Errors
    /// It is no address, nobody answers there, or the recipe has no port; in words.
    pub(super) fn find(at: &str, recipe: &Recipe, processors: u32) -> Result<Self, String> {
        let ports = recipe.ports();
        let first = *ports.first().ok_or("its recipe has no port, so nobody can reach it")?;
        let address = Address::parse(at, first)?;
        let mut why = String::new();
        for found in address.found() {
            match TcpStream::connect_timeout(found, CONNECT_LIMIT) {
                Ok(_) => {
                    let of =
                        |port: u16| if port == first { *found } else { SocketAddr::new(found.ip(), port) };
                    let addresses = ports.iter().map(|port| (*port, of(*port))).collect();
                    return Ok(Self { addresses, processors, _vm: None });
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("nobody answers at {address}: {why}"))
    }

    /// Makes a VM of a template, and waits until its service takes connections.
    ///
    /// # Errors
    /// No VM is made, its service does not answer in time, or everything is to stop; in words. What was made is removed.
    pub(super) fn make(
        template: &Template,
        recipe: &Recipe,
        processors: u32,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let vm = template.guest.make().map_err(|error| error.message)?;
        let at = match template.port {
            Some(port) => {
                SocketAddr::new(vm.ip().parse().map_err(|_| format!("{} is no address", vm.ip()))?, port)
                    .to_string()
            }
            None => vm.ip().to_owned(),
        };
        let until = Instant::now() + SERVICE_LIMIT;
        loop {
            match Self::find(&at, recipe, processors) {
                Ok(found) => return Ok(Self { _vm: Some(vm), ..found }),
                Err(why) if stop.load(Ordering::Relaxed) || Instant::now() > until => return Err(why),
                Err(_) => thread::sleep(SERVICE_PAUSE),
            }
        }
    }
}

impl Served for ExistingMember {
    fn ports(&self) -> Vec<u16> {
        self.addresses.iter().map(|(port, _)| *port).collect()
    }

    fn address(&self, port: u16) -> Option<SocketAddr> {
        self.addresses.iter().find(|(own, _)| *own == port).map(|(_, address)| *address)
    }

    fn processors(&self) -> u32 {
        self.processors
    }

    fn reach(&self) -> Reach {
        Reach::here()
    }
}
