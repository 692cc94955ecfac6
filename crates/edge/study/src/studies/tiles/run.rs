//! A run of the study of tiles: numbers of them, one after the other, until a service level breaks.

use std::path::Path;

use virtbench_model::tiles_study::{breaches, next_tiles, tiles_left};
use virtbench_record::{
    ApplianceRoot, HostUse, Plan, TileAlone, TileNumbers, TilesKey, TilesMeasured, TilesPlan, TilesRecord,
};

use super::host::{TilesFailure, TilesPlace, tile_count, too_little_memory};
use super::standing::{Standing, Stands};
use super::tile_member::TileMember;
use super::together::{Infrastructure, run_together, source};
use crate::runner::event::Estimate;
use crate::runner::prerequisites::is_program;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::runner::steps::{Recorded, Schedule, Steps, Study, Taken, run_study};
use crate::study_error::StudyError;

/// What a member takes to start, about, natively and in a VM, in nanoseconds.
const START_NS: [u64; 2] = [1_500_000_000, 12_000_000_000];
/// How many numbers of tiles a search tries, about.
const SEARCHED: u64 = 3;

/// A study of tiles.
#[derive(Debug, Clone)]
pub struct TilesStudy {
    /// What is measured.
    pub plan: TilesPlan,
    /// What the members' appliances are made of.
    pub roots: Vec<ApplianceRoot>,
}

impl TilesStudy {
    /// What is measured, and about how long that takes.
    #[must_use]
    pub fn estimate(plan: &TilesPlan) -> Estimate {
        Schedule::estimate(plan)
    }

    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured, such as for want of memory. Any other failure is the answer, and the folder holds
    /// what was measured until then.
    pub fn run(
        &self,
        members: &mut [TileMember],
        place: &TilesPlace,
        run: &mut Run<'_>,
    ) -> Result<RunEnd, StudyError> {
        self.check()?;
        run_study(&self.plan, &mut Measuring { study: self, members, place }, run)
    }

    /// What can be said before anything is made.
    fn check(&self) -> Result<(), StudyError> {
        let plan = &self.plan;
        let most = match &plan.tiles {
            TileNumbers::Given(numbers) => numbers.iter().max().copied().unwrap_or(1),
            TileNumbers::Auto { .. } => 1,
        };
        if let Some(why) = too_little_memory(plan, most) {
            return Err(StudyError::input(format!("--tiles: {why}")));
        }
        let clients = plan.members.iter().filter_map(|member| member.load.client.as_ref()?.command.first());
        let prepares = plan
            .members
            .iter()
            .filter(|member| member.prepare_by.is_none())
            .flat_map(|member| &member.prepare);
        let prepares = prepares.filter_map(|words| words.first());
        if let Some(name) = clients.chain(prepares).find(|name| !is_program(name)) {
            let why = format!("{name} is not here: install it, or name it with its folder");
            return Err(StudyError::Environment(why.into()));
        }
        match (&plan.energy, source(plan.energy.as_deref())) {
            (Some(_), Err(why)) => Err(StudyError::input(format!("--energy: {why}"))),
            _ => Ok(()),
        }
    }

    fn once(
        &self,
        members: &mut [TileMember],
        place: &TilesPlace,
        key: TilesKey,
        progress: &mut Progress<'_>,
    ) -> Result<Taken<TilesMeasured>, TilesFailure> {
        if let Some(why) = too_little_memory(&self.plan, key.tiles) {
            return Err(TilesFailure::failed(why));
        }
        let infrastructure = match key.alone {
            None => Infrastructure::prepare(&self.plan, place, progress)?,
            Some(_) => None,
        };
        let mut standing = Standing::start(&self.plan, members, place, key.tiles, progress)?;
        progress.doing(&match key.alone {
            None => format!("{} under load, repetition {}", what(&self.plan, key), key.repetition + 1),
            Some(_) => what(&self.plan, key),
        });
        let beside = infrastructure.as_ref();
        let measured = run_together(&self.plan, &mut standing, place, beside, key, progress)?;
        let (guest, notes) =
            standing.stands(place).map(|Stands { guest, notes }| (guest, notes)).unwrap_or_default();
        Ok(Taken { measured, guest, notes })
    }
}

/// What a measurement is of, in words.
fn what(plan: &TilesPlan, key: TilesKey) -> String {
    match key.alone {
        None => tile_count(key.tiles),
        Some(TileAlone::Nobody) => "one tile that stands idle".into(),
        Some(TileAlone::Member(place)) => {
            let name = plan.members.get(place as usize).map_or("", |member| member.name.as_str());
            format!("{name} by itself")
        }
    }
}

impl Schedule for TilesPlan {
    type Key = TilesKey;

    fn plan(&self) -> Plan {
        Plan::Tiles(self.clone())
    }

    fn estimate(&self) -> Estimate {
        let start = START_NS[usize::from(self.vm)].saturating_mul(self.members.len() as u64);
        let each = self.ramp_up_ns.saturating_add(self.time_ns);
        let one = |number: u64| each.saturating_add(number.saturating_mul(start));
        let repetitions = u64::from(self.repetitions);
        let (count, total): (u64, u64) = match &self.tiles {
            TileNumbers::Given(numbers) => {
                (numbers.len() as u64, numbers.iter().map(|number| one(u64::from(*number))).sum())
            }
            TileNumbers::Auto { .. } => (SEARCHED, one(2).saturating_mul(SEARCHED)),
        };
        let alone = self.measured_alone().len() as u64;
        let measurements = count.saturating_mul(repetitions).saturating_add(alone);
        let measurements = usize::try_from(measurements).unwrap_or(usize::MAX);
        let total = total.saturating_mul(repetitions).saturating_add(one(1).saturating_mul(alone));
        Estimate::of_total(measurements, total)
    }

    fn next(&self, recorded: Recorded<'_, TilesKey>) -> Option<TilesKey> {
        next_tiles(self, recorded.all)
    }

    fn left(&self, recorded: Recorded<'_, TilesKey>) -> Option<u64> {
        tiles_left(self, recorded.all)
    }

    fn host<'m>(&self, measured: &'m TilesMeasured) -> Option<&'m HostUse> {
        Some(&measured.host)
    }

    /// What broke, or why the run does not count.
    fn remarks(&self, record: &TilesRecord) -> Vec<String> {
        let tiles = what(self, record.key);
        let void = record.void().unwrap_or_default().iter();
        let void = void.map(|why| format!("this run of {tiles} does not count: {why}"));
        let broken = breaches(self, record)
            .into_iter()
            .take(3)
            .map(|breach| format!("{tiles}: {} of tile {}: {}", breach.member, breach.tile, breach.level));
        void.chain(broken).collect()
    }
}

struct Measuring<'a> {
    study: &'a TilesStudy,
    members: &'a mut [TileMember],
    place: &'a TilesPlace,
}

impl Study for Measuring<'_> {
    type Schedule = TilesPlan;

    fn storage(&self) -> Option<&Path> {
        Some(&self.place.parent)
    }

    fn appliances(&self) -> Vec<ApplianceRoot> {
        self.study.roots.clone()
    }

    fn notes(&self) -> Vec<String> {
        let facts = self.place.platform.as_ref().map(|platform| platform.facts());
        let notes = facts
            .map(|facts| [format!("{}: {}", facts.address, facts.software)].into_iter().chain(facts.notes));
        notes.into_iter().flatten().collect()
    }

    fn measure(&mut self, first: TilesKey, steps: &mut Steps<'_, '_, TilesPlan>) -> Result<(), StudyError> {
        let (study, members, place) = (self.study, &mut *self.members, self.place);
        let once = |progress: &mut Progress<'_>| study.once(members, place, first, progress);
        steps.take(first, once).map(drop)
    }
}
