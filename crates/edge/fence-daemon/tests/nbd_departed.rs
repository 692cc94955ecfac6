//! NBD clients that go while their requests are in flight: the next client is answered after those are done.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use common::raw::{self, FUA, WRITE, flagged, reply, request};
use common::{DISK_BYTES, Daemon};
use tempfile::TempDir;
use virtbench_fence::catalogue::{ELEVATOR, FIFO, HDD_SLOTS, HYBRID_SHARED, VIRTUAL_FENCE, Variant};
use virtbench_fence_daemon::config::{Config, DeviceTable, DiskTable, Size};
use virtbench_workload::FaultSpec;

/// Longer than what the daemon hands to a device at once.
const LONG: u32 = 32 << 20;
/// In the last part of a long write.
const LATE: u64 = 31 << 20;

/// Disks `alpha` and `beta` over devices that take their time, each I/O of `alpha` a little more.
fn serve(folder: TempDir, variant: &'static Variant) -> Daemon {
    let place = |name: &str| folder.path().join(name);
    let is_new = !folder.path().join("slow").exists();
    if is_new {
        for device in ["slow", "fast"] {
            File::create(folder.path().join(device)).unwrap().set_len(4 * DISK_BYTES).unwrap();
        }
    }
    let disk = |name: &str, fault: Option<FaultSpec>| DiskTable {
        cache: Some(Size(40 << 20)),
        fault,
        ..common::exported(name, DISK_BYTES)
    };
    let disks = vec![disk("alpha", Some("delay=30ms@100%".parse().unwrap())), disk("beta", None)];
    let config = Config {
        slow: Some(DeviceTable { depth: 1, ..common::file(&place("slow")) }),
        // An elevator without a cache, so that requests are put in order as they are.
        fast: (*variant != ELEVATOR).then(|| common::file(&place("fast"))),
        scheduler: common::scheduler(variant),
        nbd: common::nbd(place("nbd")),
        ..Config::new(disks)
    };
    Daemon::of_config(folder, config, is_new).unwrap()
}

fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A client that writes ones all over `alpha` and goes before it is answered.
fn writes_and_goes(socket: &Path) {
    let mut departed = raw::attached(socket, "alpha");
    departed.write_all(&request(WRITE, 9, 0, LONG)).unwrap();
    departed.write_all(&vec![1; LONG as usize]).unwrap();
}

fn twos() -> Vec<u8> {
    vec![2; 64 << 10]
}

/// Whether what the second client wrote is there once nothing of the first can come any more.
fn assert_kept(daemon: Daemon, scheduler: &'static Variant) {
    let daemon = serve(daemon.stop(), scheduler);
    let mut last = raw::attached(&daemon.socket, "alpha");
    assert!(raw::read(&mut last, LATE, 64 << 10) == twos(), "{scheduler:?}: a departed client wrote over it");
}

#[test]
fn what_a_departed_client_wrote_never_lands_on_what_the_next_one_did() {
    for scheduler in [&VIRTUAL_FENCE, &HYBRID_SHARED, &HDD_SLOTS, &FIFO] {
        let daemon = serve(folder(), scheduler);
        writes_and_goes(&daemon.socket);
        let mut next = raw::attached(&daemon.socket, "alpha");
        raw::write(&mut next, LATE, &twos());
        assert!(raw::read(&mut next, LATE, 64 << 10) == twos());
        assert_kept(daemon, scheduler);
    }
}

#[test]
fn what_a_departed_client_left_in_a_queue_is_not_overtaken() {
    let daemon = serve(folder(), &ELEVATOR);
    let mut departed = raw::attached(&daemon.socket, "alpha");
    // Each on its own is handed over whole; the last one begins behind what the next client writes.
    for at in (0..20).map(|n| n * 4096).chain([LATE + 4096]) {
        departed.write_all(&request(WRITE, 9, at, 4096)).unwrap();
        departed.write_all(&[1; 4096]).unwrap();
    }
    drop(departed);
    let mut next = raw::attached(&daemon.socket, "alpha");
    raw::write(&mut next, LATE, &twos());
    assert_kept(daemon, &ELEVATOR);
}

#[test]
fn a_client_that_comes_and_goes_meanwhile_lets_nobody_past() {
    let daemon = serve(folder(), &FIFO);
    writes_and_goes(&daemon.socket);
    // It says what it wants, and does not wait for it.
    let mut hasty = raw::attached(&daemon.socket, "alpha");
    hasty.write_all(&flagged(FUA, WRITE, 1, 0, 4096)).unwrap();
    hasty.write_all(&[3; 4096]).unwrap();
    drop(hasty);
    let mut next = raw::attached(&daemon.socket, "alpha");
    raw::write(&mut next, LATE, &twos());
    assert_kept(daemon, &FIFO);
}

#[test]
fn many_who_come_and_go_while_one_waits_take_nobody_s_place() {
    let daemon = serve(folder(), &FIFO);
    writes_and_goes(&daemon.socket);
    for _ in 0..200 {
        let mut hasty = raw::attached(&daemon.socket, "alpha");
        hasty.write_all(&request(raw::FLUSH, 1, 0, 0)).unwrap();
    }
    let mut next = raw::attached(&daemon.socket, "alpha");
    raw::write(&mut next, LATE, &twos());
    assert_kept(daemon, &FIFO);
}

#[test]
fn clients_of_other_disks_do_not_wait_for_those_who_departed() {
    let daemon = serve(folder(), &FIFO);
    writes_and_goes(&daemon.socket);
    let mut waits = raw::attached(&daemon.socket, "alpha");
    waits.write_all(&request(raw::FLUSH, 7, 0, 0)).unwrap();
    for _ in 0..20 {
        let mut other = raw::attached(&daemon.socket, "beta");
        assert_eq!(raw::read(&mut other, 0, 4096), [0; 4096]);
    }
    assert_eq!(reply(&mut waits), (0, 7));
}
