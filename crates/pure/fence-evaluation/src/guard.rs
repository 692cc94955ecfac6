//! Predictable and best-effort machines on one disk ([VirtualFence 2013], section 8): what the former lose when the latter begin.

use serde::Serialize;
use virtbench_fence::catalogue;
use virtbench_fence::paced::{Class, PacedConfig};
use virtbench_fence::predict::Predictors;
use virtbench_fence::slots::SlotOwner;
use virtbench_fence::{DiskId, SchedulerConfig};
use virtbench_model::{Estimate, FigureKind};
use virtbench_units::SeedSequence;

use crate::case::{Case, Sample, VmResult, compare};
use crate::case_error::CaseError;
use crate::load::{Load, Saturated, Site};
use crate::pace::{Paced, closed};
use crate::settings::Settings;
use crate::system::{Sharing, System};
use virtbench_fence_sim::client::{Client, Personality};
use virtbench_fence_sim::{World, WorldError};

/// Threads of the best-effort machine, without think time: it takes whatever it gets.
const BEST_EFFORT_THREADS: u32 = 16;
/// How long the hard disk must have been without predictable I/Os before best effort is served, nanoseconds: a
/// predictable thread's next block comes sooner.
const QUIET_NS: [u64; 2] = [10_000_000, 0];
/// Predictable machines: those of the heterogeneous workload less one.
const PREDICTABLE: usize = 3;

/// What keeps best effort from the predictable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// A slot for best effort (section 8).
    SharedSlot,
    /// Virtual devices; best effort is served among the others in order of arrival.
    Off,
    /// Virtual devices; best effort waits until the device is quiet.
    On,
}

impl Guard {
    /// All, in the order of the table.
    pub const ALL: [Self; 3] = [Self::SharedSlot, Self::Off, Self::On];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedSlot => "slots of 20 ms, one for best effort",
            Self::Off => "paced, without guard",
            Self::On => "paced, with guard",
        }
    }
}

/// The predictable machines without and with the best-effort load.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardResult {
    /// By predictable machine; "alone" is without the best-effort load.
    pub vms: Vec<VmResult>,
    /// What the best-effort machine got, accesses a second.
    pub best_effort: Estimate,
}

impl GuardResult {
    /// The predictable machine whose response time moves most.
    #[must_use]
    pub fn worst(&self) -> Option<&VmResult> {
        let most = |vm: &VmResult| vm.figures.response_deviation.estimate.mean;
        self.vms.iter().max_by(|a, b| most(a).total_cmp(&most(b)))
    }
}

impl Guard {
    /// The predictable machines' load, and a machine more in the place of best effort.
    #[must_use]
    pub fn load(fence: System, workload: Personality) -> Load {
        Case::heterogeneous(fence, workload).load()
    }

    /// Runs three predictable machines without and with a fourth that is best effort and asks for all it can get.
    /// `saturated` and `paced` are those of [`load`](Self::load).
    ///
    /// # Errors
    /// The world cannot be, broke, or did nothing.
    pub fn measure(
        self,
        load: &Load,
        settings: &Settings,
        predictors: &Predictors,
        saturated: &Saturated,
        paced: &[Paced],
    ) -> Result<GuardResult, CaseError> {
        let Site { system: fence, workload, .. } = load.site;
        let guard = self;
        let name = || format!("{}, {}", workload.name(), guard.name());
        let world = |error: WorldError| CaseError::World { case: name(), error };
        let best_effort = Client::Closed(closed(settings, workload, BEST_EFFORT_THREADS, 0.0));
        let sharing = match guard {
            Guard::SharedSlot => fence.sharing,
            Guard::Off | Guard::On => Sharing::Listed(&catalogue::PACED),
        };
        let system = System { sharing, ..fence };
        let run = |last: &Client, seed: u64| {
            let mut clients: Vec<Client> =
                paced.iter().take(PREDICTABLE).map(|paced| Client::Closed(paced.client)).collect();
            clients.push(last.clone());
            let Saturated { cache_blocks, span, .. } = *saturated;
            let mut config = system.world(settings, predictors, cache_blocks, clients, span, seed);
            classes(&mut config.fence.scheduler, guard);
            World::new(config)?.run()
        };
        let mut without = vec![Vec::new(); PREDICTABLE];
        let mut with = without.clone();
        let mut got = Vec::new();
        let mut seeds = SeedSequence::new(settings.seed);
        for _ in 0..settings.replications.max(1) {
            let seed = seeds.next_seed();
            for (samples, last) in [(&mut without, &Client::Off), (&mut with, &best_effort)] {
                let outcome = run(last, seed).map_err(world)?;
                for (samples, figures) in samples.iter_mut().zip(&outcome.vms) {
                    samples.push(Sample::new(figures));
                }
                if let (Client::Closed(_), Some(figures)) = (last, outcome.vms.last()) {
                    got.push(figures.per_second());
                }
            }
        }
        let results = (0..PREDICTABLE).map(|vm| {
            let figures = compare(&without[vm], &with[vm], settings.seed)?;
            Some(VmResult { paced: paced[vm], figures })
        });
        let vms = results.collect::<Option<Vec<VmResult>>>().ok_or_else(|| CaseError::Nothing(name()))?;
        let best_effort =
            FigureKind::Positive.estimate(&got, settings.seed).ok_or_else(|| CaseError::Nothing(name()))?;
        Ok(GuardResult { vms, best_effort })
    }
}

/// Makes the last disk best effort.
fn classes(scheduler: &mut SchedulerConfig, guard: Guard) {
    match scheduler {
        SchedulerConfig::Slots(slots) => {
            let last = DiskId(u16::try_from(PREDICTABLE).unwrap_or(u16::MAX));
            for owner in slots.owners.iter_mut().filter(|owner| **owner == SlotOwner::Disk(last)) {
                *owner = SlotOwner::Shared;
            }
        }
        SchedulerConfig::Paced(PacedConfig { classes, guard_ns, .. }) => {
            if let Some(class) = classes.last_mut() {
                *class = Class::BestEffort;
            }
            *guard_ns = (guard == Guard::On).then_some(QUIET_NS);
        }
        _ => {}
    }
}
