//! A run of the study of tiles: numbers of them, one after the other, until a service level breaks.

use virtbench_model::tiles_study::{breaches, next_tiles, tiles_left};
use virtbench_record::{
    ApplianceRoot, Plan, Status, TileNumbers, TilesKey, TilesMeasured, TilesPlan, TilesRecord,
};

use super::energy::source;
use super::infrastructure::Infrastructure;
use super::memory::too_little_memory;
use super::sides::TilesFailure;
use super::standing::{Standing, Stands};
use super::tile_count::tile_count;
use super::tile_member::TileMember;
use super::tiles_place::TilesPlace;
use super::together::run_together;
use crate::runner::course::unix_ns;
use crate::runner::estimate::Estimate;
use crate::runner::event::Event;
use crate::runner::programs::is_program;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::study_error::StudyError;
use virtbench_runs::RunFolder;

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
        let start = START_NS[usize::from(plan.vm)].saturating_mul(plan.members.len() as u64);
        let each = plan.ramp_up_ns.saturating_add(plan.time_ns);
        let one = |number: u64| each.saturating_add(number.saturating_mul(start));
        let repetitions = u64::from(plan.repetitions);
        let (count, total): (u64, u64) = match &plan.tiles {
            TileNumbers::Given(numbers) => {
                (numbers.len() as u64, numbers.iter().map(|number| one(u64::from(*number))).sum())
            }
            TileNumbers::Auto { .. } => (SEARCHED, one(2).saturating_mul(SEARCHED)),
        };
        let measurements = usize::try_from(count.saturating_mul(repetitions)).unwrap_or(usize::MAX);
        Estimate::of_total(measurements, total.saturating_mul(repetitions))
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
        let mut provenance = run.provenance(Plan::Tiles(self.plan.clone()), &place.parent);
        provenance.appliances.clone_from(&self.roots);
        if let Some(facts) = place.platform.as_ref().map(|platform| platform.facts()) {
            provenance.add_notes([format!("{}: {}", facts.address, facts.software)]);
            provenance.add_notes(facts.notes);
        }
        let mut folder: RunFolder<TilesRecord> = run.open(provenance)?;
        let progress = &mut Progress { stop: run.stop, observer: run.observer };
        let measured = self.measure(&mut folder, members, place, progress);
        run.end(folder, measured)
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

    fn measure(
        &self,
        folder: &mut RunFolder<TilesRecord>,
        members: &mut [TileMember],
        place: &TilesPlace,
        progress: &mut Progress<'_>,
    ) -> Result<(), StudyError> {
        let planned = Self::estimate(&self.plan);
        let total = planned.measurements as u64;
        progress.observer.event(Event::Planned(&planned));
        while let Some((tiles, repetition)) = next_tiles(&self.plan, folder.records()) {
            progress.check().map_err(StudyError::from)?;
            let started_unix_ns = unix_ns();
            let status = match self.once(members, place, tiles, repetition, progress) {
                Ok((measured, stands)) => {
                    let known = folder.provenance();
                    let is_new = |stands: &Stands| {
                        (known.guest.is_none() && stands.guest.is_some())
                            || stands.notes.iter().any(|note| !known.notes.contains(note))
                    };
                    if let Some(Stands { guest, notes }) = stands.filter(is_new) {
                        folder.amend(|provenance| {
                            provenance.guest = provenance.guest.take().or(guest);
                            provenance.add_notes(notes);
                        })?;
                    }
                    Status::Measured(Box::new(measured))
                }
                Err(failure) => failure.status()?,
            };
            let record = TilesRecord::new(TilesKey { tiles, repetition }, started_unix_ns, status);
            self.tell(&record, progress);
            folder.add(record)?;
            let done = folder.records().len() as u64;
            progress.done(done, tiles_left(&self.plan, folder.records()), total);
            let last = folder.records().last().and_then(TilesRecord::measured);
            progress.observer.event(Event::Recorded(last.map(|measured| &measured.host)));
        }
        Ok(())
    }

    /// What broke, or why the run does not count.
    fn tell(&self, record: &TilesRecord, progress: &mut Progress<'_>) {
        let tiles = record.key.tiles;
        for why in record.void().unwrap_or_default() {
            progress.remark(&format!("this run of {} does not count: {why}", tile_count(tiles)));
        }
        for breach in breaches(&self.plan, record).iter().take(3) {
            let (member, tile, level) = (&breach.member, breach.tile, &breach.level);
            progress.remark(&format!("{}: {member} of tile {tile}: {level}", tile_count(tiles)));
        }
    }

    fn once(
        &self,
        members: &mut [TileMember],
        place: &TilesPlace,
        tiles: u32,
        repetition: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(TilesMeasured, Option<Stands>), TilesFailure> {
        if let Some(why) = too_little_memory(&self.plan, tiles) {
            return Err(TilesFailure::Member { tile: None, member: None, why });
        }
        let infrastructure = Infrastructure::prepare(&self.plan, place, progress)?;
        let mut standing = Standing::start(&self.plan, members, place, tiles, progress)?;
        progress.doing(&format!("{} under load, repetition {}", tile_count(tiles), repetition + 1));
        let beside = infrastructure.as_ref();
        let measured = run_together(&self.plan, &mut standing, place, beside, repetition, progress)?;
        Ok((measured, standing.stands(place)))
    }
}
