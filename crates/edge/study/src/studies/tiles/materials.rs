//! What the members of so many tiles are made of: data, networks, and who runs them.

use std::path::PathBuf;

use virtbench_appliance::DataSet;
use virtbench_lab::{ApplianceError, ApplianceSpec, Network, TierLinks};
use virtbench_record::{ApplianceSide, TilesPlan};

use super::host::HostAppliances;
use super::member_machine::StandingMember;
use super::memory::more_than_all;
use super::sides::TilesFailure;
use super::tile_count::tile_count;
use super::tile_member::TileMember;
use super::tiles_place::TilesPlace;
use super::uses::uses;
use crate::appliances::joined::joined;
use crate::appliances::place::{network, place};
use crate::appliances::processors::processors_of;
use crate::disks::study_folder::StudyFolder;
use crate::runner::progress::Progress;
use crate::studies::application::{DataDisks, DataPlace};
use crate::study_error::StudyError;

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
