//! Devices that fail under a daemon that serves: the disk concerned degrades, others go on.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use common::raw::{READ, attached, read, reply, request, write};
use common::{DISK_BYTES, Daemon, apply, load};
use tempfile::TempDir;
use virtbench_engine::Target;
use virtbench_fence::catalogue::FIFO;
use virtbench_fence_daemon::config::{CacheTable, Config, DeviceTable, DiskTable, Limits, Size};
use virtbench_fence_daemon::metrics;
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, FaultSpec};

const BLOCK: usize = 4096;
const EIO: u32 = 5;
/// Where labels end at the latest.
const LABELS_BYTES: u64 = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

/// Disks `alpha` and `beta`; the faults are those of the slow device and of `alpha`, none where they are empty. Caches are
/// kept so free that a slow machine's writes have some blocks evicted too.
fn serve(folder: TempDir, cached: bool, slow: &str, alpha: &str) -> Daemon {
    let place = |name: &str| folder.path().join(name);
    let is_new = !folder.path().join("slow").exists();
    if is_new {
        for device in ["slow", "fast"] {
            File::create(folder.path().join(device)).unwrap().set_len(4 * DISK_BYTES).unwrap();
        }
    }
    let fault = |text: &str| (!text.is_empty()).then(|| text.parse::<FaultSpec>().unwrap());
    let disk = |name: &str, text: &str| DiskTable {
        cache: Some(Size(8 << 20)),
        fault: fault(text),
        ..common::exported(name, DISK_BYTES)
    };
    let config = Config {
        slow: Some(DeviceTable { fault: fault(slow), ..common::file(&place("slow")) }),
        fast: cached.then(|| common::file(&place("fast"))),
        cache: CacheTable { free_target: 1980, ..CacheTable::default() },
        scheduler: common::scheduler(&FIFO),
        limits: Limits { max_request: Size(256 << 10), ..Limits::default() },
        nbd: common::nbd(place("nbd")),
        metrics: Some("127.0.0.1:0".parse().unwrap()),
        ..Config::new(vec![disk("alpha", alpha), disk("beta", "")])
    };
    Daemon::of_config(folder, config, is_new).unwrap()
}

fn target(daemon: &Daemon, export: &str) -> Target {
    common::target(daemon.uri(export))
}

fn run(daemon: &Daemon, export: &str, reads: f64) -> LoadOutcome {
    let mut spec = load(AccessSpec::single(AccessLine::new(4096, reads, 100.0)), DISK_BYTES);
    spec.flush_every = (reads < 100.0).then_some(20);
    apply(&spec, &target(daemon, export))
}

fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn a_disk_whose_i_o_fails_says_so_and_its_neighbour_does_not_notice() {
    let daemon = serve(folder(), false, "", "eio=30%,short=10%");
    let (failing, well) = (run(&daemon, "alpha", 50.0), run(&daemon, "beta", 50.0));
    let share = failing.errors as f64 / (failing.errors + failing.total.operations) as f64;
    assert!((0.25..0.5).contains(&share), "{share} of {}", failing.total.operations);
    assert!(well.errors == 0 && well.total.operations > 0);
}

#[test]
fn a_device_that_is_full_fails_writes_alone() {
    let daemon = serve(folder(), false, "full=100%", "");
    let (writes, reads) = (run(&daemon, "beta", 0.0), run(&daemon, "beta", 100.0));
    assert!(writes.write.operations == 0 && writes.errors > 0, "{writes:?}");
    assert!(reads.errors == 0 && reads.total.operations > 0);
}

#[test]
fn a_slow_device_is_late_by_as_much_as_it_is_told_and_only_for_its_disk() {
    let daemon = serve(folder(), false, "", "delay=40ms@100%");
    let late = run(&daemon, "alpha", 100.0).total.latency_ns.unwrap();
    assert!(late.min >= 40_000_000, "{late:?}");
    let least = run(&daemon, "beta", 100.0).total.latency_ns.unwrap().min;
    assert!(least < 40_000_000, "{least}");
}

#[test]
fn a_cached_disk_whose_devices_fail_is_read_only_until_the_next_start_and_others_go_on() {
    let mut daemon = serve(folder(), true, "", "");
    assert_eq!((run(&daemon, "alpha", 20.0).errors, run(&daemon, "beta", 20.0).errors), (0, 0));
    daemon = serve(daemon.stop(), true, "", "full=100%");
    let refused = run(&daemon, "alpha", 0.0);
    assert!(refused.errors > 0, "{refused:?}");
    let reads = run(&daemon, "alpha", 100.0);
    assert!(reads.errors == 0 && reads.total.operations > 0, "{reads:?}");
    assert_eq!(run(&daemon, "beta", 50.0).errors, 0);
    let figures = metrics::fetch(daemon.figures()).unwrap();
    for (partition, state) in [(0, 1), (1, 0)] {
        let line = std::format!("cache_degraded{{partition=\"{partition}\",state=\"read_only\"}} {state}");
        assert!(figures.contains(&line), "{line}\n{figures}");
    }
    daemon = serve(daemon.stop(), true, "", "");
    assert_eq!((run(&daemon, "alpha", 20.0).errors, run(&daemon, "beta", 20.0).errors), (0, 0));
}

fn filled(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(BLOCK / 8)
}

/// Changes a byte of the block with this content, once the cache has it on the fast device.
fn flip(fast: &Path, content: &[u8], byte: usize) {
    let file = OpenOptions::new().read(true).write(true).open(fast).unwrap();
    let begun = Instant::now();
    let block = loop {
        let found = std::fs::read(fast).unwrap().chunks(BLOCK).position(|block| block == content);
        if let Some(found) = found {
            break found;
        }
        assert!(begun.elapsed() < LIMIT, "the block is not cached");
    };
    file.write_all_at(&[content[byte] ^ 1], (block * BLOCK + byte) as u64).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_byte_that_changes_in_the_cache_is_read_from_the_slow_device_or_an_error_if_nothing_else_has_it() {
    let folder = serve(folder(), true, "", "").stop();
    let slow = OpenOptions::new().write(true).open(folder.path().join("slow")).unwrap();
    for at in (LABELS_BYTES..4 * DISK_BYTES).step_by(BLOCK) {
        slow.write_all_at(&filled(at), at).unwrap();
    }
    let daemon = serve(folder, true, "", "");
    let fast = daemon.path("fast");
    let mut stream = attached(&daemon.path("nbd"), "alpha");
    let clean = read(&mut stream, 0, 4096);
    flip(&fast, &clean, 700);
    assert!(read(&mut stream, 512, 512) == clean[512..1024], "a clean block");

    let dirty = filled(7);
    write(&mut stream, 8192, &dirty);
    flip(&fast, &dirty, 700);
    for part in 0..8 {
        stream.write_all(&request(READ, part, 8192 + part * 512, 512)).unwrap();
        assert_eq!(reply(&mut stream), (EIO, part), "a dirty block");
    }
    assert!(read(&mut stream, 0, 4096) == clean, "another block");
    write(&mut stream, 8192, &filled(8));
    assert!(read(&mut stream, 8704, 512) == filled(8)[..512], "overwritten");
}
