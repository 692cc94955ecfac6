//! A model of NBD disks beside the daemon: many connections, every command, every scheduler, with a cache and without.
//!
//! `VIRTBENCH_MODEL_OPERATIONS` says how many requests there are in all, `VIRTBENCH_MODEL_SEED` from which seed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use common::Daemon;
use common::clients::{Clients, EXPORTS, SECTORS};
use tempfile::TempDir;
use virtbench_fence_daemon::config::SchedulerName;

/// What Table 1's schedulers need; others take what there is.
const CACHED: [&str; 4] = ["Hybrid/Shared", "Hybrid/Shared+NWC", "Hybrid/Partitioned", "VirtualFence"];
const UNCACHED: [&str; 2] = ["HDD+NWC", "SSD+NWC"];
/// Requests between two starts of a daemon at most.
const LIFE: u64 = 20_000;
/// Systems that are examined side by side: most of their time they wait for what comes late.
const AT_ONCE: usize = 4;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
}

/// Each scheduler, without a cache and with one where it can be either.
fn systems() -> impl Iterator<Item = (&'static str, bool)> {
    let both = SchedulerName::ALL.into_iter().flat_map(|(name, _)| [(name, false), (name, true)]);
    both.filter(|(name, cached)| !(if *cached { UNCACHED.contains(name) } else { CACHED.contains(name) }))
}

/// Two disks over memory. Everything is predicted to be quick, and some of it comes late, so that much is in flight.
fn serve(folder: TempDir, scheduler: &str, cached: bool) -> Daemon {
    let place = |name: &str| folder.path().join(name).display().to_string();
    let is_new = !folder.path().join("slow").exists();
    if is_new {
        for device in ["slow", "fast"] {
            File::create(folder.path().join(device)).unwrap().set_len(32 << 20).unwrap();
        }
    }
    let device = |name: &str| {
        std::format!("[{name}]\ndevice = 'buffered:{}'\ndepth = 2\nfault = 'delay=300us@2%'\n", place(name))
    };
    let slow = if scheduler == "SSD+NWC" { String::new() } else { device("slow") };
    let fast = if cached || scheduler == "SSD+NWC" { device("fast") } else { String::new() };
    let disk = |name: &str| {
        let size = SECTORS * 512;
        std::format!("[[disk]]\nname = '{name}'\nexport = '{name}'\nsize = {size}\ncache = '1 MiB'\n")
    };
    let text = std::format!(
        "{slow}{fast}[cache]\nfree_target = 64\nlow_watermark = 8\nscratch_blocks = 64\n\
         [scheduler]\nname = '{scheduler}'\nslot_ms = 1.0\n\
         [scheduler.predict]\nslow_knots = [[0, 0.002], [1073741824, 0.003]]\nfast_per_io_us = 2.0\n\
         [limits]\nmax_request = '64 KiB'\nspin_us = 0\n[nbd]\nmemory = '64 MiB'\n{}{}{}",
        common::listen(&folder.path().join("nbd")),
        disk(EXPORTS[0]),
        disk(EXPORTS[1]),
    );
    Daemon::of_text(folder, &text, is_new).unwrap()
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

fn compare(scheduler: &str, cached: bool, seed: u64, requests: u64) -> u64 {
    let mut clients = Clients::new(seed);
    let mut daemon = serve(folder(), scheduler, cached);
    while clients.answered < requests {
        clients.work(&daemon.socket, LIFE.min(requests - clients.answered));
        clients.depart_all();
        daemon = serve(daemon.stop(), scheduler, cached);
        clients.read_all(&daemon.socket);
        clients.depart_all();
    }
    clients.answered
}

/// One system beside its model. Gives how many requests were answered.
fn examine(scheduler: &str, cached: bool, seed: u64, requests: u64) -> u64 {
    let begun = Instant::now();
    let what = std::format!("{scheduler}, {} cache, seed {seed}", if cached { "with a" } else { "no" });
    let compared = catch_unwind(AssertUnwindSafe(|| compare(scheduler, cached, seed, requests)));
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
                    && let Some((scheduler, cached)) = systems.get(number)
                {
                    let count = examine(scheduler, *cached, seed + number as u64, requests);
                    answered.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{answered:?} requests in all");
}
