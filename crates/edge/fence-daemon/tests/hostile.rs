//! Clients that misbehave, and others beside them that do not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use vhost::VhostBackend;
use virtbench_fence::catalogue::PASS_THROUGH;
use virtbench_fence_daemon::Daemon;
use virtbench_fence_daemon::config::{Config, DeviceSpec, DeviceTable, DiskTable, SchedulerTable};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_workload::FaultSpec;
use vm_memory::{Bytes, GuestAddress};

use crate::driver;

use driver::{Client, DATA, HEADER, INDIRECT, MEMORY_BYTES, NEXT, STATUS, USED, WRITE};

const LIMIT: Duration = Duration::from_secs(60);

struct Served {
    folder: tempfile::TempDir,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Disks `a` and `b` over nothing.
    fn start() -> Self {
        Self::with(None)
    }

    /// The same with this fault of each disk's I/Os.
    fn with(fault: Option<FaultSpec>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = |name: &str| DiskTable {
            socket: Some(folder.path().join(name)),
            queues: 1,
            fault: fault.clone(),
            ..DiskTable::new(name.to_owned(), 1 << 20)
        };
        let config = Config {
            slow: Some(DeviceTable::new(DeviceSpec::Null { size_bytes: 8 << 20 })),
            scheduler: SchedulerTable { name: &PASS_THROUGH, ..SchedulerTable::default() },
            ..Config::new(vec![disk("a"), disk("b")])
        };
        config.check().unwrap();
        let stopper = Stopper::new().unwrap();
        let stop = stopper.clone();
        let (up, is_up) = mpsc::channel();
        let thread = thread::spawn(move || {
            let daemon = Daemon::start(&config, stop).unwrap();
            up.send(()).unwrap();
            daemon.run().unwrap();
        });
        is_up.recv_timeout(LIMIT).unwrap();
        Self { folder, stopper, thread: Some(thread) }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        assert!(self.thread.take().unwrap().join().is_ok() || thread::panicking());
    }
}

#[test]
fn a_driver_is_answered_and_told_what_cannot_be() {
    let served = Served::start();
    let mut client = Client::connect(&served.socket("a"));
    assert_eq!(client.ask(0, 0), 0, "a read");
    assert_eq!(client.ask(1, 2040), 0, "a write at the end");
    assert_eq!(client.ask(0, 2048), 1, "a read beyond the end");
    assert_eq!(client.ask(0, u64::MAX), 1, "a sector beyond all numbers");
    assert_eq!(client.ask(8, 0), 0, "its name");
    assert_eq!(client.map.read_obj::<u8>(GuestAddress(DATA)).unwrap(), b'a');
    assert_eq!(client.ask(99, 0), 2, "an unknown request");
}

#[test]
fn a_ring_that_cannot_be_is_stopped_and_nobody_else_notices() {
    let served = Served::start();
    let mut honest = Client::connect(&served.socket("b"));
    type Table = &'static [(u64, u32, u16, u16)];
    let cases: &[(&str, Table, u16, u16)] = &[
        ("a circle", &[(HEADER, 16, NEXT, 1), (HEADER, 16, NEXT, 0)], 0, 0),
        ("memory that is not shared", &[(1 << 40, 16, NEXT, 1), (STATUS, 1, WRITE, 0)], 0, 0),
        ("memory across the end", &[(MEMORY_BYTES as u64 - 8, 16, 0, 0)], 0, 0),
        ("a length of 4 GiB", &[(HEADER, u32::MAX, 0, 0)], 0, 0),
        ("no status", &[(HEADER, 16, 0, 0)], 0, 0),
        ("a head outside the table", &[], 200, 0),
        ("a next outside the table", &[(HEADER, 16, NEXT, 99)], 0, 0),
        ("more than the ring holds", &[(HEADER, 16, 0, 0)], 0, 40),
        ("a table in itself", &[(0, 16, INDIRECT, 0)], 0, 0),
        ("a status before the header", &[(STATUS, 1, WRITE | NEXT, 1), (HEADER, 16, 0, 0)], 0, 0),
    ];
    for (what, table, head, more) in cases {
        let mut hostile = Client::connect(&served.socket("a"));
        hostile.describe(0, table);
        hostile.offer(*head, *more);
        hostile.hears_of_an_error();
        assert_eq!(hostile.used(), 0, "{what}");
        // It goes on knocking.
        hostile.offer(*head, *more);
        assert_eq!(honest.ask(0, 0), 0, "beside {what}");
    }
    assert_eq!(Client::connect(&served.socket("a")).ask(0, 0), 0, "the next client of that disk");
}

#[test]
fn a_broken_ring_is_not_at_rest_before_its_last_request_is() {
    let served = Served::with(Some("delay=500ms@100%".parse().unwrap()));
    let mut hostile = Client::counting(&served.socket("a"));
    hostile.begin(0, 0);
    hostile.is_taken();
    hostile.offer(200, 0);
    hostile.hears_of_an_error();
    assert_eq!(hostile.used(), 0, "the request came back before it was asked about");
    hostile.frontend.get_vring_base(0).unwrap();
    assert_eq!(hostile.used(), 1, "the ring is said to be at rest while a request of it is in flight");
}

#[test]
fn kicks_without_end_leave_others_their_answers() {
    let served = Served::start();
    let hostile = Client::connect(&served.socket("a"));
    let mut honest = Client::connect(&served.socket("b"));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let _ = hostile.kick.write(1);
            }
        });
        for _ in 0..200 {
            assert_eq!(honest.ask(0, 0), 0);
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_client_that_goes_in_the_middle_leaves_room_for_the_next() {
    let served = Served::start();
    for _ in 0..50 {
        let mut client = Client::connect(&served.socket("a"));
        client.describe(0, &[(HEADER, 16, NEXT, 1), (DATA, 4096, NEXT | WRITE, 2), (STATUS, 1, WRITE, 0)]);
        client.offer(0, 0);
    }
    assert_eq!(Client::connect(&served.socket("a")).ask(0, 0), 0);
}

#[test]
fn memory_that_is_taken_away_ends_that_connection_alone() {
    let served = Served::start();
    let mut honest = Client::connect(&served.socket("b"));
    for left in [0, 0x1000, 0x3000] {
        let mut hostile = Client::connect(&served.socket("a"));
        assert_eq!(hostile.ask(0, 0), 0);
        // Nothing of what goes may be touched here after this.
        hostile.file.set_len(left).unwrap();
        if left > USED {
            hostile.offer(0, 0);
        }
        for _ in 0..20 {
            hostile.kick.write(1).unwrap();
            assert_eq!(honest.ask(0, 0), 0, "beside memory of {left} bytes");
        }
        // It is sent away: the next one is let in.
        let mut next = Client::connect(&served.socket("a"));
        assert_eq!(next.ask(0, 0), 0);
    }
}
