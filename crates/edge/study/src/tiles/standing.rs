//! So many tiles that stand at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use virtbench_appliance::DataSet;
use virtbench_lab::{ApplianceError, ApplianceSpec, Network, RunningAppliance, TierLinks};
use virtbench_platforms::Platform;
use virtbench_recipe::Recipe;
use virtbench_record::{ApplianceSide, GuestFacts, TilesPlan};

use super::existing::ExistingMember;
use super::member_machine::MemberMachine;
use super::sides::TilesFailure;
use super::tile_member::TileMember;
use super::uses::{stages, uses};
use crate::appliance_place::{network, place};
use crate::appliance_processors::processors_of;
use crate::application_study::{DataDisks, DataPlace};
use crate::applications::Progress;
use crate::course::nanoseconds;
use crate::guests::ApplianceGuests;
use crate::joined::joined;
use crate::study_error::StudyError;
use crate::study_folder::StudyFolder;

/// Where members run.
#[derive(Debug)]
pub struct TilesPlace {
    /// What boots VMs; nothing natively.
    pub guests: Option<ApplianceGuests>,
    /// Where copies of the data go: a folder in this one, held while there is a measurement.
    pub parent: PathBuf,
    /// The name of the run, for that folder.
    pub name: String,
    /// The program that the generators are modes of: this one.
    pub program: PathBuf,
    /// Where the infrastructure load's operations are done, if there is one.
    pub platform: Option<Box<dyn Platform>>,
    /// The recipes of members that are there already, in the plan's order; nothing where this run starts them.
    pub existing: Option<Vec<Recipe>>,
}

/// A member that runs.
pub(super) struct StandingMember {
    /// Which tile, from 1.
    pub(super) tile: u32,
    /// Its place in the plan's members.
    pub(super) place: usize,
    pub(super) machine: MemberMachine,
}

/// Tiles that stand. They end with this, before their data go.
pub(super) struct Standing {
    /// Tile by tile, in the plan's order.
    pub(super) members: Vec<StandingMember>,
    /// From the first start until all were ready, in nanoseconds.
    pub(super) ready_ns: u64,
    _disks: Option<DataDisks>,
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
        let preparing: Vec<_> = members.iter().map(|member| member.preparing(members)).collect();
        let mut of_a_tile: Vec<Option<&DataSet>> = Vec::new();
        for (member, by) in members.iter_mut().zip(&preparing) {
            of_a_tile.push(member.data(by.as_ref(), progress)?);
        }
        let sets: Vec<Option<&DataSet>> =
            of_a_tile.iter().copied().cycle().take(of_a_tile.len() * tiles as usize).collect();
        progress.doing(&format!("{tiles} tiles: copying data"));
        let disks = DataDisks::make(&DataPlace::File, folder.path(), &sets, progress)?;
        let mut wanted = Vec::new();
        for tile in 1..=tiles {
            let ways = joined(members.len(), &uses(&plan.members), plan.vm);
            let failed = |error: ApplianceError| StudyError::Environment(error.into());
            for ((number, member), mut way) in members.iter().enumerate().zip(ways.map_err(failed)?) {
                if plan.vm {
                    // A network each, so that members may have the same ports.
                    way.0 = network(&plan.network).map_err(failed)?;
                }
                let spec = spec(plan, member, place, (tile, wanted.len()), way, &disks)?;
                wanted.push((tile, number, spec));
            }
        }
        progress.doing(&format!("{tiles} tiles: starting {} members", wanted.len()));
        let begun = Instant::now();
        let mut standing = Vec::new();
        for stage in stages(&plan.members) {
            let now: Vec<&Wanted> = wanted.iter().filter(|(_, place, _)| stage.contains(place)).collect();
            standing.append(&mut start_all(plan, &now, progress.stop)?);
        }
        standing.sort_by_key(|one| (one.tile, one.place));
        Ok(Self { members: standing, ready_ns: nanoseconds(begun.elapsed()), _disks: Some(disks), folder })
    }

    /// Finds the members of the first so many tiles where they are. Who is not there is no sign of how many fit.
    fn find(
        plan: &TilesPlan,
        recipes: &[Recipe],
        tiles: u32,
        folder: StudyFolder,
        progress: &mut Progress<'_>,
    ) -> Result<Self, TilesFailure> {
        progress.doing(&format!("{tiles} tiles: looking for their members"));
        let begun = Instant::now();
        let mut members = Vec::new();
        for (tile, number) in (1..=tiles).zip(0..) {
            for (place, (member, recipe)) in plan.members.iter().zip(recipes).enumerate() {
                progress.check().map_err(StudyError::from)?;
                // One that stands by may be without an address.
                let Some(at) = member.at.get::<usize>(number) else { continue };
                let found = ExistingMember::find(at, recipe, member.vcpus).map_err(|why| {
                    StudyError::Environment(format!("{} of tile {tile}: {why}", member.name).into())
                })?;
                members.push(StandingMember { tile, place, machine: MemberMachine::Existing(found) });
            }
        }
        Ok(Self { members, ready_ns: nanoseconds(begun.elapsed()), _disks: None, folder })
    }

    /// What the first one's guest is, where there are guests.
    pub(super) fn guest(&self, place: &TilesPlace) -> Option<GuestFacts> {
        Some(place.guests.as_ref()?.facts(self.members.first()?.machine.facts()?))
    }

    /// Who has ended, and why, if anybody has.
    pub(super) fn crashed(&mut self, plan: &TilesPlan) -> Option<TilesFailure> {
        self.members.iter_mut().find_map(|one| {
            let why = one.machine.crashed()?;
            Some(TilesFailure::member(one.tile, &plan.members[one.place].name, why))
        })
    }
}

fn spec(
    plan: &TilesPlan,
    member: &TileMember,
    at: &TilesPlace,
    (tile, number): (u32, usize),
    (network, tiers): (Network, TierLinks),
    disks: &DataDisks,
) -> Result<ApplianceSpec, StudyError> {
    let own = member.plan();
    let name = format!("{} of tile {tile}", own.name);
    let (vcpus, memory_bytes) = (own.vcpus, own.memory_bytes);
    let side = ApplianceSide { name: name.clone(), vm: plan.vm, vcpus, memory_bytes };
    // Natively members are dealt to processors in turn, and held to as many as they have. A VM has threads for its processors,
    // which the host's scheduler places.
    let processors = if plan.vm { Vec::new() } else { processors_of(number, vcpus)? };
    Ok(ApplianceSpec {
        name,
        recipe: member.recipe().clone(),
        root: member.image(),
        data: disks.paths.get(number).cloned().flatten(),
        vcpus,
        memory_bytes,
        network,
        tiers,
        processors,
        place: place(at.guests.as_ref(), &side)?,
    })
}

/// Who is to be started: tile, place in the plan, and what it is.
type Wanted = (u32, usize, ApplianceSpec);

/// What came of the starts so far.
#[derive(Default)]
struct Starts {
    standing: Vec<StandingMember>,
    failure: Option<TilesFailure>,
}

fn start_all(
    plan: &TilesPlan,
    wanted: &[&Wanted],
    stop: &AtomicBool,
) -> Result<Vec<StandingMember>, TilesFailure> {
    let (next, starts) = (AtomicUsize::new(0), Mutex::new(Starts::default()));
    let held = || starts.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some((tile, place, spec)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            if stop.load(Ordering::Relaxed) || held().failure.is_some() {
                return;
            }
            // What a path costs is in what the generators see.
            match RunningAppliance::start_unmeasured(spec) {
                Ok(appliance) => {
                    let machine = MemberMachine::Started(Box::new(appliance));
                    held().standing.push(StandingMember { tile: *tile, place: *place, machine });
                }
                Err(error) => {
                    let name = &plan.members[*place].name;
                    held().failure.get_or_insert(TilesFailure::member(*tile, name, error.to_string()));
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
