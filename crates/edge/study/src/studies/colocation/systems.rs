//! Ways of sharing one pair of emulated devices, measured one after the other with the same machines, and simulated beside.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thiserror::Error;
use virtbench_fence_daemon::config::{Config, DiskTable, LoadError};
use virtbench_fence_daemon::simulation::{NotModelled, world};
use virtbench_fence_sim::client::open_client;
use virtbench_fence_sim::{Span, World, WorldError};
use virtbench_model::together::{compared_system, system_rows};
use virtbench_record::{
    Provenance, SetPlan, SetRecord, SetRole, Simulated, SystemFate, SystemNumbers, SystemRow,
};
use virtbench_runs::{LoadedRun, load_run, read_provenance};
use virtbench_units::format_duration_ns;
use virtbench_workload::{JobSpec, LoadSpec};

use super::schedule::{JobsError, jobs_of};
use super::study::{Colocation, ColocationOptions};
use crate::disks::backing::Backing;
use crate::fence::{System, Throttle, sizes};
use crate::runner::event::Estimate;
use crate::runner::run::Run;
use crate::setup::{Setup, SetupError};
use crate::study_error::StudyError;

/// What a system takes beside its sets, at first guess: its devices, its caches, its machines' boots.
const BESIDE: Duration = Duration::from_secs(15);

/// A system with what came of it.
#[derive(Debug)]
pub struct TriedSystem {
    /// The way of sharing that was tried.
    pub system: System,
    /// What came of it.
    pub fate: SystemFate,
    /// Each machine in each repetition.
    pub rows: Vec<SystemRow>,
}

impl TriedSystem {
    /// Each machine over its repetitions.
    #[must_use]
    pub fn numbers(&self) -> SystemNumbers {
        compared_system(
            self.system.to_string(),
            self.system.summary.to_owned(),
            self.fate.clone(),
            &self.rows,
        )
    }
}

/// Systems that were tried.
#[derive(Debug)]
pub struct ComparedSystems {
    /// In the order asked for.
    pub tried: Vec<TriedSystem>,
    /// Why it is no success: the first failure, or that this host has none of the systems.
    pub failure: Option<StudyError>,
}

/// What a study measures under so many systems, and about how long that takes.
#[must_use]
pub fn estimate_systems(study: &Colocation, systems: usize) -> Estimate {
    let Estimate { measurements, machines, total_ns, .. } = study.estimate();
    let beside_ns = u64::try_from(BESIDE.as_nanos()).unwrap_or(u64::MAX);
    let all_ns = |one_ns: u64| one_ns.saturating_add(beside_ns).saturating_mul(systems as u64);
    Estimate {
        measurements: measurements.saturating_mul(systems),
        machines,
        total_ns: total_ns.map(all_ns),
        moments_ns: None,
        is_bound: false,
        besides: None,
    }
}

/// Measures a study under each system, in a run folder of its own in the one of `run`. A system that fails or cannot be had
/// leaves the others be; with [`Run::resume`] one whose results are there is not measured again. `on_tried` is told, after
/// each system, all that were tried.
///
/// # Errors
/// It was to stop, or `on_tried` failed.
pub fn compare_systems<E: From<StudyError>>(
    study: &Colocation,
    systems: &[System],
    run: &mut Run<'_>,
    on_tried: &mut dyn FnMut(&[TriedSystem]) -> Result<(), E>,
) -> Result<ComparedSystems, E> {
    let (mut failure, mut tried) = (None::<StudyError>, Vec::new());
    let mut pace = Pace { first_guess: first_guess(study), taken: Vec::new() };
    for (index, system) in systems.iter().enumerate() {
        let left_ns = pace.left_s(systems.len() - index).saturating_mul(1_000_000_000);
        let (number, left) = (format!("{}/{}", index + 1, systems.len()), format_duration_ns(left_ns));
        run.remark(&format!("{number} {system}: {}; about {left} left", system.summary));
        if let Some(why) = beyond_slots(&study.sets).filter(|_| system.has_slots()) {
            run.remark(&why);
        }
        let folder = run.out.join(system.folder());
        let begun = Instant::now();
        let setup = system.setup().map_err(StudyError::input)?;
        let study =
            Colocation { options: ColocationOptions { setup, ..study.options.clone() }, ..study.clone() };
        let measured = study.run(&mut Run {
            out: &folder,
            resume: run.resume && read_provenance(&folder).is_ok(),
            command: run.command.clone(),
            stop: run.stop,
            observer: &mut *run.observer,
        });
        pace.add(begun.elapsed());
        let fate = match measured.and_then(|ended| ended) {
            Ok(()) => SystemFate::Measured,
            // Whatever a stop broke first.
            Err(_) if run.stop.load(Ordering::Relaxed) => return Err(StudyError::Stopped.into()),
            Err(error) => {
                let (words, is_lacking) = (error.to_string(), error.lacks_something());
                run.remark(&format!("{system}: {}{words}", if is_lacking { "unavailable: " } else { "" }));
                // What this host lacks is no failure, unless it lacks it for all.
                if !is_lacking || failure.is_none() {
                    failure = Some(error);
                }
                if is_lacking { SystemFate::Unavailable(words) } else { SystemFate::Failed(words) }
            }
        };
        let rows = load_run(&folder)
            .map_or_else(|_| Vec::new(), |loaded| rows(*system, &study, &folder, &loaded, run));
        tried.push(TriedSystem { system: *system, fate, rows });
        on_tried(&tried)?;
    }
    let only_lacking = tried.iter().all(|tried| !matches!(tried.fate, SystemFate::Failed(_)));
    let some_measured = tried.iter().any(|tried| tried.fate == SystemFate::Measured);
    Ok(ComparedSystems { failure: failure.filter(|_| !(only_lacking && some_measured)), tried })
}

/// The most of its time slots that a load may ask for without queues that are long now and short then, in percent.
const FITS_PERCENT: f64 = 80.0;

/// Which machines' loads do not fit into time slots of one length, where saturation is what all do together; nothing where all fit.
fn beyond_slots(sets: &[SetPlan]) -> Option<String> {
    let seeking = sets.iter().find(|set| set.role == SetRole::Saturation)?;
    let together = sets.iter().find(|set| set.role == SetRole::Together)?;
    if seeking.members.len() < together.members.len() {
        return None;
    }
    let slot_percent = 100.0 / together.members.len() as f64;
    let used = together
        .members
        .iter()
        .filter_map(|member| Some((&member.vm, 100.0 * member.share_percent? / slot_percent)));
    let beyond: Vec<String> = used
        .filter(|(_, percent)| *percent > FITS_PERCENT)
        .map(|(vm, percent)| format!("{vm} ({percent:.0} %)"))
        .collect();
    (!beyond.is_empty()).then(|| {
        format!(
            "these do not fit into their time slots, of which a load may ask for {FITS_PERCENT:.0} %: {}. Their response times will deviate by \
             what queues do so close to full; --pattern has their shares",
            beyond.join(", ")
        )
    })
}

/// What a system's machines did, and what the simulator says of them.
fn rows(
    system: System,
    study: &Colocation,
    folder: &Path,
    loaded: &LoadedRun<Vec<SetRecord>>,
    run: &mut Run<'_>,
) -> Vec<SystemRow> {
    let LoadedRun { provenance, records, .. } = loaded;
    let simulated = simulate(folder, provenance, records, &study.specs()).unwrap_or_else(|error| {
        run.remark(&format!("{system}: not simulated: {error}"));
        Vec::new()
    });
    let plan = provenance.plan.colocation();
    plan.map_or_else(Vec::new, |plan| system_rows(&system.to_string(), plan, records, &simulated))
}

/// How long a system takes, so far.
#[derive(Debug)]
struct Pace {
    first_guess: Duration,
    taken: Vec<Duration>,
}

impl Pace {
    /// One that took no time was there already, or cannot be had.
    fn add(&mut self, taken: Duration) {
        if taken > self.first_guess / 4 {
            self.taken.push(taken);
        }
    }

    /// What so many systems will take, in seconds.
    fn left_s(&self, systems: usize) -> u64 {
        let mean_s = match self.taken.len() {
            0 => self.first_guess.as_secs_f64(),
            count => self.taken.iter().sum::<Duration>().as_secs_f64() / count as f64,
        };
        Duration::try_from_secs_f64((mean_s * systems as f64).round()).map_or(0, |left| left.as_secs())
    }
}

/// What the sets of one system take by their times alone, and some more.
fn first_guess(study: &Colocation) -> Duration {
    let options = &study.options;
    let times_ns = options.time_ns.unwrap_or(0).saturating_add(options.ramp_ns.unwrap_or(0));
    let sets = study.sets.len() as u64 * u64::from(options.repetitions);
    BESIDE + Duration::from_nanos(times_ns.saturating_mul(sets))
}

/// Accesses of each cached block before anything counts, on average: the guests' caches were filled as often.
const TIMES: f64 = 3.0;

/// At so many a second of each disk, which the slowest system keeps up with while its caches are still cold.
const FILLING_RATE: f64 = 2.0;

/// A study that cannot be simulated.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// Its disks are not the fence's.
    #[error("{0} is no disk of the fence: only those can be simulated")]
    Backing(String),
    /// QEMU or the kernel takes part.
    #[error("throttling by QEMU or the host's kernel is not simulated")]
    Throttled,
    /// Its load has no rate, several workers, or pauses.
    #[error("{0} is no load with one worker and a rate: only such are simulated")]
    Load(String),
    /// Its disks were named otherwise.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The configuration in its folder.
    #[error(transparent)]
    Config(#[from] LoadError),
    /// The models.
    #[error(transparent)]
    NotModelled(#[from] NotModelled),
    /// The world.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Its rates.
    #[error(transparent)]
    Jobs(#[from] JobsError),
}

/// Simulates the sets in which machines run at shares of a saturation, with the rates that were measured at.
///
/// # Errors
/// There is no model of something.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
pub fn simulate(
    folder: &Path,
    provenance: &Provenance,
    records: &[SetRecord],
    jobs: &[JobSpec],
) -> Result<Vec<Simulated>, SimulationError> {
    let Some(plan) = provenance.plan.colocation() else { return Ok(Vec::new()) };
    let Backing::Fence(options) = Setup::parse(&plan.disk)?.backing else {
        return Err(SimulationError::Backing(plan.disk.clone()));
    };
    if options.throttle != Throttle::Off {
        return Err(SimulationError::Throttled);
    }
    let config = Config::load(&folder.join("fence.toml"))?;
    let (seed, size_bytes) = (plan.seed, plan.size_bytes);
    let sizes = sizes(&options, config.disks.len(), size_bytes);
    let loads_of = |set: &SetPlan| -> Result<Vec<LoadSpec>, SimulationError> {
        let all = jobs_of(set, plan, jobs, records, 0)?;
        let load = |job| match job {
            JobSpec::Load(load) => Ok(load),
            JobSpec::Workload(_) => Err(SimulationError::Load(plan.workloads.join(", "))),
        };
        all.into_iter().map(load).collect()
    };
    let blocks =
        if options.is_cached() { size_bytes / 4096 * u64::from(options.cache_percent) / 100 } else { 0 };
    let warm_up_ns = (TIMES * blocks as f64 / FILLING_RATE * 1e9) as u64;
    let mut found = Vec::new();
    for set in plan.sets.iter().filter(|set| set.role != SetRole::Saturation) {
        let loads = loads_of(set)?;
        let Some(first) = loads.first() else { continue };
        let client = |disk: &DiskTable| {
            let place = set.members.iter().position(|member| member.vm == disk.name);
            // Everybody takes part in filling the caches, as beforehand in the guests' disks.
            let nothing = LoadSpec { ramp_ns: 0, time_ns: 0, ..first.clone() };
            let load = place.map_or(&nothing, |place| &loads[place]);
            open_client(load, warm_up_ns, FILLING_RATE)
                .ok_or_else(|| SimulationError::Load(plan.workloads.join(", ")))
        };
        let clients = config.disks.iter().map(client).collect::<Result<Vec<_>, _>>()?;
        let span = Span { warm_up_ns: warm_up_ns.saturating_add(first.ramp_ns), measure_ns: first.time_ns };
        let outcome = World::new(world(&config, sizes, clients, span, seed)?)?.run()?;
        found.extend(set.members.iter().filter_map(|member| {
            let place = config.disks.iter().position(|disk| disk.name == member.vm)?;
            let figures = outcome.vms.get(place)?;
            Some(Simulated {
                set: set.name.clone(),
                vm: member.vm.clone(),
                per_second: figures.per_second(),
                response_ns: figures.summary(),
            })
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use virtbench_workload::{AccessLine, AccessSpec};

    use super::super::schedule::{Saturating, pattern};
    use super::*;

    #[test]
    fn loads_that_do_not_fit_into_their_slots_are_named_before_they_run() {
        let job = JobSpec::Load(LoadSpec::new(
            AccessSpec { lines: vec![AccessLine::new(4096, 50.0, 100.0)] },
            1 << 24,
        ));
        let of =
            |shares: &[f64], saturating| beyond_slots(&pattern("load", &job, shares, saturating).unwrap());
        let said = of(&[8.0, 24.0, 19.0, 21.0], Saturating::All).unwrap();
        assert!(
            said.contains("vm2 (96 %), vm4 (84 %)") && !said.contains("vm1") && !said.contains("vm3"),
            "{said}"
        );
        assert_eq!(of(&[8.0, 20.0, 20.0, 20.0], Saturating::All), None);
        assert_eq!(
            of(&[8.0, 24.0, 24.0, 24.0], Saturating::One),
            None,
            "of one machine's saturation nothing follows"
        );
    }

    #[test]
    fn what_is_left_is_guessed_by_the_plan_and_then_by_what_was() {
        let mut pace = Pace { first_guess: Duration::from_secs(80), taken: Vec::new() };
        assert_eq!(pace.left_s(3), 240);
        pace.add(Duration::from_secs(1));
        assert_eq!(pace.left_s(2), 160, "one that was there already says nothing");
        pace.add(Duration::from_secs(100));
        pace.add(Duration::from_secs(110));
        assert_eq!(pace.left_s(2), 210);
    }
}
