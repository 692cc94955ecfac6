//! A load of x % of saturation ([VirtualFence 2013], section 4.3: "by finding the saturation throughput for each
//! application, and adjusting the number of threads and thread I/O rate").

use virtbench_fence::predict::Predictors;

use virtbench_fence_sim::Outcome;
use virtbench_fence_sim::client::{Client, ClosedLoop, Personality};
use virtbench_fence_sim::{Span, World, WorldError};

use crate::settings::{Saturating, Settings};
use crate::system::{FREE_TARGET, Store, System};

/// Threads of each machine while saturation is sought.
const SATURATING_THREADS: u32 = 16;
/// The most threads that a machine is given.
const MOST_THREADS: u32 = 64;
/// Runs that bring a hit rate closer to its aim.
const SIZINGS: u32 = 4;
/// A hit rate is met within this.
const HIT_NEAR: f64 = 0.01;
/// Runs that bring a think time closer to its aim.
const STEPS: u32 = 6;
/// An aim is met within this share.
const NEAR: f64 = 0.01;

/// A system ready to be run.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// How disks are stored.
    pub system: &'a System,
    /// What all experiments have in common.
    pub settings: &'a Settings,
    /// What the devices' calibration gave.
    pub predictors: &'a Predictors,
    /// Cache of each virtual disk, where there is one, in blocks of 4 KiB.
    pub cache_blocks: u32,
    /// How long a run takes.
    pub span: Span,
}

impl Bench<'_> {
    /// Runs these clients.
    ///
    /// # Errors
    /// The world cannot be, or broke.
    pub fn run(&self, clients: Vec<Client>, seed: u64) -> Result<Outcome, WorldError> {
        let Self { system, settings, predictors, cache_blocks, span } = *self;
        World::new(system.world(settings, predictors, cache_blocks, clients, span, seed))?.run()
    }
}

/// A machine with its load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paced {
    /// Its threads and think time.
    pub client: ClosedLoop,
    /// Accesses a second that were aimed at.
    pub wanted: f64,
    /// Accesses a second alone, in the last run of the search.
    pub reached: f64,
    /// Mean response time alone in that run, seconds.
    pub waits_s: f64,
}

/// The most accesses a second that a system does of an application.
///
/// The paper finds "the saturation throughput for each application" (section 4.3), without saying in how
/// many machines it runs. [`Saturating::One`] is the literal reading: one machine alone, in its partition;
/// where only its own slots serve it, the other slots would do as much each. [`Saturating::All`] runs all
/// machines at once, so that the disk's head also moves between partitions.
///
/// Closed loops without think time are the load. The open-loop search of `virtbench saturate` asks for
/// another thing, the highest rate of arrivals that is kept up with; the paper's generator is closed and
/// cannot offer more than is served.
///
/// # Errors
/// The world broke.
pub fn saturation(bench: &Bench<'_>, personality: Personality, vms: usize) -> Result<f64, WorldError> {
    let client = Client::Closed(closed(bench.settings, personality, SATURATING_THREADS, 0.0));
    let mut clients = vec![client; vms];
    // One machine alone would have all of a shared cache: its saturation says nothing of the system's.
    let shared = matches!(bench.system.store, Store::Shared { .. });
    let one = bench.settings.saturating == Saturating::One && !shared;
    if one {
        clients[1..].fill(Client::Off);
    }
    let outcome = bench.run(clients, bench.settings.seed)?;
    let sum: f64 = outcome.vms.iter().map(virtbench_fence_sim::VmOutcome::per_second).sum();
    let rest_idle = one && bench.system.keeps_slots_idle();
    Ok(if rest_idle { sum * vms as f64 } else { sum })
}

/// Sizes the caches so that machines under the full load of [`saturation`] hit at the system's rate
/// ("the SSD cache empirically sized to achieve a hit rate of X%", section 7), and gives the rate reached.
/// At 100 % everything fits.
///
/// # Errors
/// The world broke.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
pub fn size_cache(
    bench: &mut Bench<'_>,
    personality: Personality,
    vms: usize,
) -> Result<Option<f64>, WorldError> {
    let Some(percent) = bench.system.hit_percent() else { return Ok(None) };
    let set = bench.settings.file_set_bytes as f64 / 4096.0;
    let wanted = percent / 100.0;
    let mut share = wanted;
    let mut reached = None;
    for _ in 0..SIZINGS {
        // What keeps blocks free, and what waits for a commit, caches nothing.
        let whole = if wanted < 1.0 { share * set } else { 2.0 * set };
        bench.cache_blocks = whole as u32 + 2 * FREE_TARGET;
        let client = Client::Closed(closed(bench.settings, personality, SATURATING_THREADS, 0.0));
        reached = bench.run(vec![client; vms], bench.settings.seed)?.hit_rate();
        let Some(rate) = reached else { return Ok(None) };
        if wanted >= 1.0 || (rate - wanted).abs() < HIT_NEAR {
            break;
        }
        share = (share + wanted - rate).clamp(0.01, 1.5);
    }
    Ok(reached)
}

/// Threads and think times with which each machine alone does its share of `saturation`.
///
/// Threads are in proportion to the shares, so that a thread's rate is the same in every machine, and as
/// few as let every thread think at least as long as it waits. That is how the paper's must have been:
/// throughput and response time deviations of a closed loop are related by `R / (Z + R')`, R and R'
/// being the response times alone and in company, Z the think time, and Figure 5's pairs (3/10, 6/12,
/// 13/33) give 0.3, 0.5 and 0.4 for it.
///
/// # Errors
/// The world broke.
pub fn pace(
    bench: &Bench<'_>,
    personality: Personality,
    shares: &[f64],
    saturation: f64,
) -> Result<Vec<Paced>, WorldError> {
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let mut scale = 1;
    loop {
        let mut paced: Vec<Paced> = Vec::with_capacity(shares.len());
        for (vm, share) in shares.iter().enumerate() {
            let wanted = share * saturation;
            // Machines of one share are of one kind: the first stands for all.
            let known = paced.iter().find(|paced| paced.wanted == wanted).copied();
            paced.push(match known {
                Some(known) => known,
                None => {
                    let threads = threads(scale, share / least);
                    pace_one(bench, personality, (vm, shares.len()), (threads, wanted))?
                }
            });
        }
        let most = paced.iter().map(|paced| paced.client.threads).max().unwrap_or(0);
        let easy = paced.iter().all(|paced| paced.client.think_ns >= paced.waits_s * 1e9);
        if easy || most >= MOST_THREADS {
            return Ok(paced);
        }
        scale += 1;
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn threads(scale: u32, ratio: f64) -> u32 {
    ((f64::from(scale) * ratio).round() as u32).clamp(1, MOST_THREADS)
}

/// The think time with which `threads` threads of machine number `vm` of `vms` alone do `wanted` accesses
/// a second, or none where even that is too slow.
fn pace_one(
    bench: &Bench<'_>,
    personality: Personality,
    (vm, vms): (usize, usize),
    (threads, wanted): (u32, f64),
) -> Result<Paced, WorldError> {
    let cycle_s = f64::from(threads) / wanted;
    let mut think_s = cycle_s;
    let mut paced = None;
    for _ in 0..STEPS {
        let client = closed(bench.settings, personality, threads, think_s * 1e9);
        let mut clients = vec![Client::Off; vms];
        clients[vm] = Client::Closed(client);
        let figures = &bench.run(clients, bench.settings.seed)?.vms[vm];
        let reached = figures.per_second();
        let waits_s = figures.mean_ms().unwrap_or(0.0) / 1e3;
        paced = Some(Paced { client, wanted, reached, waits_s });
        if (reached / wanted - 1.0).abs() < NEAR || (think_s == 0.0 && reached < wanted) {
            break;
        }
        think_s = (cycle_s - waits_s).max(0.0);
    }
    let client = closed(bench.settings, personality, threads, think_s * 1e9);
    Ok(paced.unwrap_or(Paced { client, wanted, reached: 0.0, waits_s: 0.0 }))
}

pub(crate) fn closed(
    settings: &Settings,
    personality: Personality,
    threads: u32,
    think_ns: f64,
) -> ClosedLoop {
    let (files, page_cache_hits) = (settings.files(personality), settings.page_cache_hits);
    ClosedLoop { personality, files, threads, think_ns, page_cache_hits }
}
