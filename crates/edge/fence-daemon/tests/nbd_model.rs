//! A model of NBD disks beside the daemon: many connections, every command, every scheduler, with a cache and without.
//!
//! `VIRTBENCH_MODEL_OPERATIONS` says how many requests there are in all, `VIRTBENCH_MODEL_SEED` from which seed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use common::Daemon;
use common::clients::{Clients, EXPORTS, SECTORS};
use tempfile::TempDir;
use virtbench_fence::catalogue::{Variant, served};
use virtbench_fence_daemon::config::{
    CacheTable, Config, DeviceSpec, DeviceTable, DiskTable, Limits, NbdTable, PredictTable, SchedulerTable,
    Size,
};

/// Requests between two starts of a daemon at most.
const LIFE: u64 = 20_000;
/// Systems that are examined side by side: most of their time they wait for what comes late.
const AT_ONCE: usize = 4;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
}

/// Each scheduler, without a cache and with one where it can be either.
fn systems() -> impl Iterator<Item = (&'static Variant, bool)> {
    let both = served().flat_map(|variant| [(variant, false), (variant, true)]);
    both.filter(|(variant, cached)| !variant.fixed || variant.placement.is_cached() == *cached)
}

/// Two disks over memory. Everything is predicted to be quick, and some of it comes late, so that much is in flight.
fn serve(folder: TempDir, variant: &'static Variant, cached: bool) -> Daemon {
    let place = |name: &str| folder.path().join(name);
    let is_new = !folder.path().join("slow").exists();
    if is_new {
        for device in ["slow", "fast"] {
            File::create(folder.path().join(device)).unwrap().set_len(32 << 20).unwrap();
        }
    }
    let device = |name: &str| DeviceTable {
        depth: 2,
        fault: Some("delay=300us@2%".parse().unwrap()),
        ..DeviceTable::new(DeviceSpec::Buffered(place(name)))
    };
    let disk = |name: &&str| DiskTable {
        cache: Some(Size(1 << 20)),
        ..common::exported(name, (SECTORS * 512) as u64)
    };
    let predict = PredictTable {
        slow_knots: vec![(0, 0.002), (1 << 30, 0.003)],
        fast_per_io_us: 2.0,
        ..PredictTable::default()
    };
    let nbd = common::nbd(place("nbd")).map(|nbd| NbdTable { memory: Size(64 << 20), ..nbd });
    let config = Config {
        slow: variant.needs_slow().then(|| device("slow")),
        fast: (cached || variant.needs_fast()).then(|| device("fast")),
        cache: CacheTable { free_target: 64, low_watermark: 8, scratch_blocks: 64, ..CacheTable::default() },
        scheduler: SchedulerTable { slot_ms: 1.0, predict, ..common::scheduler(variant) },
        limits: Limits { max_request: Size(64 << 10), spin_us: 0, ..Limits::default() },
        nbd,
        ..Config::new(EXPORTS[..2].iter().map(disk).collect())
    };
    Daemon::of_config(folder, config, is_new).unwrap()
}

/// Where files are memory.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory).unwrap()
    } else {
        TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }
}

fn compare(variant: &'static Variant, cached: bool, seed: u64, requests: u64) -> u64 {
    let mut clients = Clients::new(seed);
    let mut daemon = serve(folder(), variant, cached);
    while clients.answered < requests {
        clients.work(&daemon.socket, LIFE.min(requests - clients.answered));
        clients.depart_all();
        daemon = serve(daemon.stop(), variant, cached);
        clients.read_all(&daemon.socket);
        clients.depart_all();
    }
    clients.answered
}

/// One system beside its model. Gives how many requests were answered.
fn examine(variant: &'static Variant, cached: bool, seed: u64, requests: u64) -> u64 {
    let begun = Instant::now();
    let what = std::format!("{variant:?}, {} cache, seed {seed}", if cached { "with a" } else { "no" });
    let compared = catch_unwind(AssertUnwindSafe(|| compare(variant, cached, seed, requests)));
    let count = compared.unwrap_or_else(|panic| {
        println!("{what}: not what the model says");
        resume_unwind(panic)
    });
    println!("{what}: {count} requests as the model says, in {:.1} s", begun.elapsed().as_secs_f64());
    count
}

#[test]
fn every_scheduler_s_disks_hold_what_some_order_of_the_writes_leaves() {
    let seed = number("VIRTBENCH_MODEL_SEED", 15);
    let systems: Vec<_> = systems().collect();
    let requests = number("VIRTBENCH_MODEL_OPERATIONS", 60_000).div_ceil(systems.len() as u64);
    println!("VIRTBENCH_MODEL_SEED={seed} draws the same again");
    let (next, answered) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && let Some((variant, cached)) = systems.get(number)
                {
                    let count = examine(variant, *cached, seed + number as u64, requests);
                    answered.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{answered:?} requests in all");
}
