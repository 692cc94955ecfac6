//! What the simulator says of a study on emulated devices: the same configuration, loads and moments.

use std::path::Path;

use thiserror::Error;
use virtbench_fence_daemon::config::{Config, DiskTable, LoadError};
use virtbench_fence_daemon::simulation::{NotModelled, world};
use virtbench_fence_sim::client::open_client;
use virtbench_fence_sim::{Span, World, WorldError};
use virtbench_record::{Provenance, SetPlan, SetRecord, SetRole, Simulated};
use virtbench_workload::{JobSpec, LoadSpec};

use super::jobs::{JobsError, jobs_of};
use crate::disks::backing::Backing;
use crate::fence::{Throttle, sizes};
use crate::setup::{Setup, SetupError};

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
