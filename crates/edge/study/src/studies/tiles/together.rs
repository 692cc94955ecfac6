//! All generators of all tiles at one time, with the infrastructure load beside them; the host and its energy, looked at meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::monotonic_ns;
use virtbench_lab::{
    CpuSample, EnergySource, NetworkSample, available_memory_bytes, disk_busy_ms, find_energy, open_energy,
};
use virtbench_platforms::Platform;
use virtbench_record::{
    HostUse, OperationsMeasured, OperationsPlan, TileDone, TileEnergy, TileHostSecond, TileMemberMeasured,
    TilesKey, TilesMeasured, TilesPlan,
};

use super::host::{TilesFailure, TilesPlace};
use super::outcome::{Generator, Moments, NoOutcome, wait_until};
use super::standing::{Standing, StandingMember};
use crate::runner::progress::{HostClock, Progress, unix_ns};
use crate::studies::operations::{Fleet, PieceLoad, REMOVE_LIMIT, Starts, measure_piece};
use crate::study_error::StudyError;

/// Between two looks at how everybody is.
const PAUSE: Duration = Duration::from_millis(50);

/// How long generators have to connect before all begin, and as much again for each of them, in nanoseconds.
const LEAD_NS: u64 = 3_000_000_000;

const LEAD_EACH_NS: u64 = 300_000_000;

/// Who takes long to get ready takes long for the first page too: a part of that time more, up to so much, in nanoseconds.
const LEAD_OF_READY: u64 = 4;

const MOST_LEAD_OF_READY_NS: u64 = 60_000_000_000;

/// A generator that ends so long before measuring does has failed, in nanoseconds.
const EARLY_NS: u64 = 1_000_000_000;

/// A generator whose busiest thread is busier than this is the limit by itself, in percent.
const BUSY_PERCENT: f64 = 90.0;

/// A generator that begins so much later than the others voids the run, in nanoseconds.
const LATE_NS: u64 = 1_000_000_000;

/// How long after a generator's failure the news may take that its member has ended.
const NEWS: Duration = Duration::from_secs(2);

/// What one generator did, or why it failed.
type Ended = Option<Result<TileDone, NoOutcome>>;

/// What came of everything that runs at one time.
struct Outcomes {
    members: Vec<Ended>,
    infrastructure: Option<Result<OperationsMeasured, StudyError>>,
}

/// Lets all generators begin at one moment, and the infrastructure load if there is one; watches members and host until all have
/// ended.
///
/// # Errors
/// A member ended, a generator failed, the platform failed, or it was to stop.
pub(super) fn run_together(
    plan: &TilesPlan,
    standing: &mut Standing,
    place: &TilesPlace,
    infrastructure: Option<&Infrastructure<'_>>,
    key: TilesKey,
    progress: &mut Progress<'_>,
) -> Result<TilesMeasured, TilesFailure> {
    let loaded = standing.members.len() as u64;
    let of_ready_ns = (standing.ready_ns / LEAD_OF_READY).min(MOST_LEAD_OF_READY_NS);
    let begin_ns = monotonic_ns() + LEAD_NS + LEAD_EACH_NS * loaded + of_ready_ns;
    let measure_ns = begin_ns + plan.ramp_up_ns;
    let moments = Moments { begin_ns, measure_ns, end_ns: measure_ns + plan.time_ns };
    let generators = generators(plan, standing, place, key, moments)?;
    let mut energy = source(plan.energy.as_deref());
    let mut watch = HostWatch::new(moments.measure_ns, moments.end_ns, standing.folder.path());
    let quiet = AtomicBool::new(false);
    let clock = HostClock::now();
    let outcomes = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&mut energy, &quiet));
        let run = |stop: &AtomicBool| {
            infrastructure.map(|load| load.run(moments, plan.seed.wrapping_add(key.repetition.into()), stop))
        };
        let outcomes = all(plan, standing, &generators, &run, &mut watch, (moments, progress.stop));
        quiet.store(true, Ordering::Relaxed);
        let _ = asking.join();
        outcomes
    })?;
    let void_clock = clock.jumped();
    let begin_unix_ns = unix_ns().saturating_sub(monotonic_ns().saturating_sub(moments.measure_ns));
    let infrastructure = match outcomes.infrastructure.transpose() {
        // Ended because another one failed, who is named then.
        Err(StudyError::Stopped) => Err(StudyError::Stopped),
        failed_or_done => Ok(failed_or_done?),
    };
    let mut members = done(plan, standing, outcomes.members, progress.stop)?;
    for (place, member) in members.iter_mut().enumerate() {
        member.network_thread_percent = watch.network_thread_percent(place);
    }
    let void = void_clock.into_iter().chain(limited(&members)).collect();
    let no_host = || StudyError::input("the accounts of the host's processors cannot be read");
    Ok(TilesMeasured {
        ready_ns: standing.ready_ns,
        members,
        host: watch.host().ok_or_else(no_host)?,
        memory_bytes: Some(virtbench_lab::memory_bytes()),
        seconds: watch.seconds(),
        energy: read(energy, begin_unix_ns),
        elapsed_ns: plan.time_ns,
        infrastructure: infrastructure?,
        void,
    })
}

/// Runs all generators and the infrastructure load to their end. One that fails ends the others.
fn all(
    plan: &TilesPlan,
    standing: &mut Standing,
    generators: &[Option<Generator>],
    infrastructure: &(dyn Fn(&AtomicBool) -> Option<Result<OperationsMeasured, StudyError>> + Sync),
    watch: &mut HostWatch,
    (moments, stop): (Moments, &AtomicBool),
) -> Result<Outcomes, TilesFailure> {
    let (over, halt) = (&AtomicBool::new(false), &AtomicBool::new(false));
    thread::scope(|scope| {
        let beside = scope.spawn(move || infrastructure(halt));
        let run = |generator| scope.spawn(move || Generator::run(generator, over));
        let threads: Vec<_> = generators.iter().map(|generator| generator.as_ref().map(run)).collect();
        let is_done = || threads.iter().flatten().all(thread::ScopedJoinHandle::is_finished);
        let until = || is_done() && monotonic_ns() >= moments.end_ns;
        // One of ours that fails ends before measuring does.
        let has_failed = || {
            let ours = generators.iter().zip(&threads).filter(|(generator, _)| {
                generator.as_ref().is_some_and(|generator| !generator.may_end_early())
            });
            monotonic_ns() + EARLY_NS < moments.end_ns
                && (ours.filter_map(|(_, thread)| thread.as_ref()).any(thread::ScopedJoinHandle::is_finished)
                    || plan.infrastructure.is_some() && beside.is_finished())
        };
        let failure = follow(plan, standing, watch, stop, &|| until() || has_failed());
        // Operations that are in flight at the end are waited for.
        halt.store(failure.is_some() || monotonic_ns() < moments.end_ns, Ordering::Relaxed);
        over.store(true, Ordering::Relaxed);
        let defect = || Err(NoOutcome::Failed("its generator's thread has failed: a defect".to_owned()));
        let joined = threads.into_iter().map(|thread| Some(thread?.join().unwrap_or_else(|_| defect())));
        let members: Vec<Ended> = joined.collect();
        let infrastructure = beside.join().unwrap_or(Some(Err(StudyError::Stopped)));
        failure.map_or(Ok(Outcomes { members, infrastructure }), Err)
    })
}

/// A generator for each member that is to be under load, with a seed of its own.
fn generators(
    plan: &TilesPlan,
    standing: &Standing,
    place: &TilesPlace,
    key: TilesKey,
    moments: Moments,
) -> Result<Vec<Option<Generator>>, TilesFailure> {
    let folder = standing.folder.path();
    let first = plan.seed.wrapping_add(u64::from(key.repetition) << 32);
    let members = (first..).zip(&standing.members);
    let generator = |(seed, one): (u64, &super::standing::StandingMember)| {
        let member = &plan.members[one.place];
        if !key.loads(one.place) {
            return Ok(None);
        }
        Generator::of(plan, member, one.machine.served(), &place.program, folder, moments, seed)
            .map_err(|why| StudyError::input(format!("member {}: {why}", member.name)).into())
    };
    members.map(generator).collect()
}

/// Looks at everybody until something is so; returns what went wrong meanwhile.
fn follow(
    plan: &TilesPlan,
    standing: &mut Standing,
    watch: &mut HostWatch,
    stop: &AtomicBool,
    until: &dyn Fn() -> bool,
) -> Option<TilesFailure> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Some(StudyError::Stopped.into());
        }
        if let Some(failure) = standing.crashed(plan) {
            return Some(failure);
        }
        watch.look(&standing.members);
        if until() {
            return None;
        }
        thread::sleep(PAUSE);
    }
}

/// What each member did.
fn done(
    plan: &TilesPlan,
    standing: &mut Standing,
    ended: Vec<Ended>,
    stop: &AtomicBool,
) -> Result<Vec<TileMemberMeasured>, TilesFailure> {
    let failed = standing.members.iter().zip(&ended).find_map(|(one, end)| match end {
        // Generators that were ended because another one failed are not to blame.
        Some(Err(NoOutcome::Failed(why))) => Some((one.tile, one.place, why.clone())),
        _ => None,
    });
    if let Some((tile, place, why)) = failed {
        let begun = Instant::now();
        while begun.elapsed() < NEWS && !stop.load(Ordering::Relaxed) {
            if let Some(failure) = standing.crashed(plan) {
                return Err(failure);
            }
            thread::sleep(PAUSE);
        }
        return Err(TilesFailure::member(tile, &plan.members[place].name, why));
    }
    let measured = |(one, end): (&super::standing::StandingMember, Ended)| {
        let member = plan.members[one.place].name.clone();
        let done = end.transpose().map_err(|end| TilesFailure::member(one.tile, &member, end.words()))?;
        let ready_ns = one.machine.facts().map_or(0, |facts| facts.ready_ns);
        let tile = one.tile;
        Ok(TileMemberMeasured { tile, member, ready_ns, network_thread_percent: None, done })
    };
    standing.members.iter().zip(ended).map(measured).collect()
}

/// Why generators void a run.
fn limited(members: &[TileMemberMeasured]) -> Vec<String> {
    let mut words = Vec::new();
    for one in members {
        let Some(done) = &one.done else { continue };
        let who = format!("the generator of {} of tile {}", one.member, one.tile);
        if done.driver_is_limit {
            let busy = done.busiest_thread_percent.unwrap_or(100.0);
            // One that is not busy was not let work in time: by its control group, or by others that run here.
            let how = if busy > BUSY_PERCENT { "busy" } else { "busy, and had no processor when it was due" };
            words.push(format!("{who} was the limit, {busy:.0} % {how}"));
        }
        if let Some(late_ns) = done.late_ns.filter(|late_ns| *late_ns > LATE_NS) {
            words.push(format!("{who} began {:.1} s later than the others", late_ns as f64 / 1e9));
        }
    }
    words
}

const SECOND_NS: u64 = 1_000_000_000;

/// What the counters said at a moment.
struct Look {
    at_ns: u64,
    cpu: CpuSample,
    available_bytes: Option<u64>,
    disk_ms: Option<u64>,
    network: NetworkSample,
}

/// Looks at the host from one moment to another, by the monotonic clock.
pub(super) struct HostWatch {
    from_ns: u64,
    to_ns: u64,
    folder: PathBuf,
    looks: Vec<Look>,
    /// Of each member, processor time of the thread that carries its network at the first look and at the last one.
    threads: Vec<[Option<u64>; 2]>,
}

impl HostWatch {
    /// Nothing was seen yet. The disk is that of this folder.
    pub(super) fn new(from_ns: u64, to_ns: u64, folder: &Path) -> Self {
        Self { from_ns, to_ns, folder: folder.to_owned(), looks: Vec::new(), threads: Vec::new() }
    }

    /// Looks if the next second has come, or the end.
    pub(super) fn look(&mut self, members: &[StandingMember]) {
        let now_ns = monotonic_ns();
        let due_ns = (self.from_ns + self.looks.len() as u64 * SECOND_NS).min(self.to_ns);
        let is_over = self.looks.last().is_some_and(|look| look.at_ns >= self.to_ns);
        if now_ns < due_ns || is_over {
            return;
        }
        let Ok(cpu) = CpuSample::take() else { return };
        let (available_bytes, disk_ms) = (available_memory_bytes(), disk_busy_ms(&self.folder));
        let network = NetworkSample::take();
        let threads = members.iter().map(|member| member.machine.network_thread_ns());
        if self.looks.is_empty() {
            self.threads = threads.map(|first| [first, None]).collect();
        } else {
            self.threads.iter_mut().zip(threads).for_each(|(thread, last)| thread[1] = last);
        }
        self.looks.push(Look { at_ns: now_ns, cpu, available_bytes, disk_ms, network });
    }

    /// How busy the thread was that carries the network of this member, in percent.
    pub(super) fn network_thread_percent(&self, member: usize) -> Option<f64> {
        let [before, after] = *self.threads.get(member)?;
        let length_ns = self.looks.last()?.at_ns.checked_sub(self.looks.first()?.at_ns)?.max(1);
        Some(100.0 * after?.checked_sub(before?)? as f64 / length_ns as f64)
    }

    /// The host over all of the time; nothing of fewer than two looks.
    pub(super) fn host(&self) -> Option<HostUse> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        (self.looks.len() > 1).then(|| first.cpu.until(&last.cpu))
    }

    /// Second by second.
    pub(super) fn seconds(&self) -> Vec<TileHostSecond> {
        let second = |pair: &[Look]| {
            let (before, after) = (&pair[0], &pair[1]);
            let used = before.cpu.until(&after.cpu);
            let length_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
            let length_ms = length_ns as f64 / 1e6;
            let disk = |before: Option<u64>, after: Option<u64>| {
                Some((100.0 * after?.checked_sub(before?)? as f64 / length_ms).min(100.0))
            };
            TileHostSecond {
                start_ns: before.at_ns.saturating_sub(self.from_ns),
                cpu_percent: used.cpu_percent,
                steal_percent: used.steal_percent,
                available_bytes: after.available_bytes,
                disk_percent: disk(before.disk_ms, after.disk_ms),
                network_percent: before.network.busiest_percent(&after.network, length_ns),
            }
        };
        self.looks.windows(2).map(second).collect()
    }
}

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);

const ENERGY_PAUSE: Duration = Duration::from_millis(20);

/// The source that is asked for, or the one that this host has; else why there is none.
pub(super) fn source(asked: Option<&str>) -> Result<Box<dyn EnergySource>, String> {
    asked.map_or_else(find_energy, open_energy).map_err(|error| error.to_string())
}

/// Asks every second until it is over.
pub(super) fn ask(source: &mut Result<Box<dyn EnergySource>, String>, over: &AtomicBool) {
    let Ok(source) = source else { return };
    loop {
        let begun = Instant::now();
        if let Err(error) = source.ask(unix_ns()) {
            tracing::warn!(%error, "energy");
        }
        while begun.elapsed() < EVERY {
            if over.load(Ordering::Relaxed) {
                // The end of the last interval.
                let _ = source.ask(unix_ns());
                return;
            }
            thread::sleep(ENERGY_PAUSE);
        }
    }
}

/// What was read since measuring began, in nanoseconds since 1970.
pub(super) fn read(source: Result<Box<dyn EnergySource>, String>, begin_unix_ns: u64) -> TileEnergy {
    let read = source.and_then(|mut source| {
        let samples = source.samples(begin_unix_ns).map_err(|error| error.to_string())?;
        Ok(TileEnergy::Read { source: source.name(), samples })
    });
    read.unwrap_or_else(TileEnergy::Unavailable)
}

/// What the platform has of this run goes when this is dropped.
struct Removal<'a>(&'a dyn Platform);

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove_all(Instant::now() + REMOVE_LIMIT) {
            tracing::warn!(%error, "VMs of this run are left for the next one to remove");
        }
    }
}

/// VMs that operations are done on.
pub(super) struct Infrastructure<'a> {
    fleet: Fleet<'a>,
    plan: &'a OperationsPlan,
    _removal: Removal<'a>,
}

impl<'a> Infrastructure<'a> {
    /// Makes the VMs; nothing where none are asked for.
    ///
    /// # Errors
    /// One cannot be made or started, or it was to stop.
    pub(super) fn prepare<'b: 'a>(
        plan: &'a TilesPlan,
        place: &'a TilesPlace,
        progress: &mut Progress<'b>,
    ) -> Result<Option<Self>, StudyError> {
        let Some((plan, platform)) = plan.infrastructure.as_ref().zip(place.platform.as_deref()) else {
            return Ok(None);
        };
        let vms = plan.vms.first().copied().unwrap_or(2);
        progress.doing(&format!("making {vms} VMs for the infrastructure load"));
        let removal = Removal(platform);
        let fleet = Fleet::prepare(platform, plan, vms, progress.stop)?;
        Ok(Some(Self { fleet, plan, _removal: removal }))
    }

    /// Operates from the common beginning to the common end. Those that are meant to start before measuring begins do not count.
    ///
    /// # Errors
    /// It was to stop.
    pub(super) fn run(
        &self,
        moments: Moments,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<OperationsMeasured, StudyError> {
        let short =
            || StudyError::input("the mix of management operations has no room in the measuring time");
        let (rounds, gap_ns) = self.plan.pace().ok_or_else(short)?;
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let total = u64::from(self.plan.mix.values().sum::<u32>());
        let counted = rounds.saturating_mul(total);
        let ramp_up_ns = moments.measure_ns.saturating_sub(moments.begin_ns);
        let starts = Starts::Paced {
            gap: Duration::from_nanos(gap_ns),
            // Whole rounds, so that counting begins with VMs that are ready for one.
            uncounted: number(ramp_up_ns / (gap_ns * total).max(1) * total),
            counted: number(counted),
        };
        wait_until(moments.begin_ns, stop);
        if stop.load(Ordering::Relaxed) {
            return Err(StudyError::Stopped);
        }
        // From measuring on it takes as long as the gaps do, which is the measuring time but for what divides unevenly.
        let begin_ns = monotonic_ns();
        let length_ns = moments.measure_ns.saturating_sub(begin_ns).saturating_add(gap_ns * counted);
        let length = Duration::from_nanos(length_ns);
        let load = PieceLoad { starts, clients: self.plan.most_at_once, length, seed };
        measure_piece(&self.fleet, &load, None, stop)
    }
}
