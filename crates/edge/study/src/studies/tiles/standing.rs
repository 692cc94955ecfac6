//! So many tiles that stand at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use virtbench_lab::{ApplianceSpec, RunningAppliance};
use virtbench_recipe::Recipe;
use virtbench_record::{GuestFacts, TilesPlan};

use super::existing::ExistingMember;
use super::host::TilesHosting;
use super::materials::{Data, Materials};
use super::member_at::MemberAt;
use super::member_machine::{MemberMachine, StandingMember};
use super::sides::TilesFailure;
use super::tile_count::tile_count;
use super::tile_member::TileMember;
use super::tiles_place::TilesPlace;
use super::uses::stages;
use crate::disks::study_folder::StudyFolder;
use crate::runner::course::nanoseconds;
use crate::runner::progress::Progress;
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
