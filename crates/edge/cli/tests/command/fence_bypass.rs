//! `virtbench fence` with a disk whose long streams of writes go past its cache.

use fuser::Errno;

use crate::power::disk::{PowerDisk, Work};
use crate::support::fence::{CACHED, Fence};
use crate::support::{signal, wait_for};

const MIB: u64 = 1 << 20;

fn bypassing() -> String {
    CACHED.replacen("socket = \"A\"", "socket = \"A\"\nbypass = \"1 MiB\"", 1)
}

/// In sequence, a stream of 16 MiB after the other with a flush behind each, until it is killed.
const STREAM: [&str; 13] = [
    "--verify",
    "--read",
    "0",
    "--random",
    "0",
    "--bs",
    "64KiB",
    "--outstanding",
    "4",
    "--time",
    "60s",
    "--flush-every",
    "256",
];

fn figure(fence: &Fence, name: &str) -> u64 {
    let figures = fence.command("status", &["--raw"]).stdout;
    let line = figures.lines().find_map(|line| line.strip_prefix(&format!("virtbench_fence_{name} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {figures}"))
}

fn bypassed(fence: &Fence) -> u64 {
    figure(fence, "bypassed_bytes_total{disk=\"a\"}")
}

#[test]
fn most_of_a_long_stream_is_on_the_slow_device_and_there_after_a_kill() {
    let fence = Fence::formatted(&bypassing());
    let daemon = fence.serve();
    let load = fence.begin_load("A", &STREAM);
    // All of the first 16 MiB but what begins the stream, and some of the next, which begins as that did.
    wait_for("two long streams", || (bypassed(&fence) >= 18 * MIB).then_some(()));
    let cached = figure(&fence, "cache_blocks{partition=\"0\",state=\"used\"}");
    assert!(cached * 4096 <= 2 * MIB, "{cached} blocks are in the cache");
    // First: what fails once the daemon has gone is not known to be written.
    signal(&load, "KILL");
    daemon.kill();
    crate::support::finish(load);
    let daemon = fence.serve();
    let check = fence.load("A", &["--verify-only", "--read", "0", "--random", "0", "--bs", "64KiB"]);
    assert_eq!(check.code(), 0, "{check:?}");
    assert!(check.json()["blocks_checked"].as_u64().unwrap() >= 15 * MIB / (64 << 10), "{check:?}");
    let status = fence.command("status", &["--json"]);
    assert_eq!(status.json()["disks"][0]["bypassed_bytes"].as_f64(), Some(0.0), "counted since the start");
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(fence.command("drain", &[]).code(), 0);
}

/// The kernel tells of a failed sync once, and what it had is gone: the client hears of it, though nothing of the cache is lost.
#[test]
fn a_failed_sync_of_the_slow_device_fails_the_clients_flush() {
    let slow = PowerDisk::new(64 << 20);
    let fence = Fence::new(&bypassing().replace("file:SLOW", &format!("buffered:{}", slow.path().display())));
    assert_eq!(fence.command("format", &[]).code(), 0);
    let daemon = fence.serve();
    let load = fence.begin_load("A", &STREAM);
    wait_for("a long stream", || (bypassed(&fence) >= 8 * MIB).then_some(()));
    signal(&load, "KILL");
    crate::support::finish(load);
    let flush = |disk: &str| {
        let one =
            ["--read", "0", "--bs", "4KiB", "--outstanding", "1", "--flush-every", "1", "--time", "100ms"];
        let loaded = fence.load(disk, &one);
        let errors = loaded.json()["errors"].clone();
        errors.as_u64().unwrap_or_else(|| panic!("{loaded:?}"))
    };
    slow.refuse_work(Some((Work::Sync, Errno::EIO)));
    assert!(flush("A") > 0, "its writes past the cache are lost");
    assert_eq!(flush("B"), 0, "it has written nothing past its cache");
    slow.refuse_work(None);
    // The last that failed may have been told or not.
    flush("A");
    assert_eq!(flush("A"), 0);
    assert_ne!(figure(&fence, "cache_degraded{partition=\"0\",state=\"read_only\"}"), 1);
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_bypass_without_a_cache_is_refused_by_name() {
    let text =
        crate::support::fence::PLAIN.replacen("socket = \"A\"", "socket = \"A\"\nbypass = \"1 MiB\"", 1);
    let fence = Fence::new(&text);
    for command in ["format", "serve"] {
        let refused = fence.command(command, &[]);
        assert_ne!(refused.code(), 0);
        assert!(refused.stderr.contains("disk a: bypass: it has no cache to pass by"), "{refused:?}");
    }
}
