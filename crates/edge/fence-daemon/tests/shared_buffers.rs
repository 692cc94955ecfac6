//! Guests whose requests name one page twice, share a page, or change it while a device is at work: what was in their memory
//! is never taken for what is on the disk.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::driver;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::Daemon;
use driver::{Client, DATA, HEADER, NEXT, STATUS, WRITE};
use tempfile::TempDir;
use virtbench_fence::catalogue::FIFO;
use virtbench_fence_daemon::config::{CacheTable, Config, DiskTable, Limits, Size};
use vm_memory::{Bytes, GuestAddress};

const LIMIT: Duration = Duration::from_secs(60);
const DEVICE_BYTES: u64 = 32 << 20;
/// Where labels end at the latest.
const LABELS_BYTES: u64 = 1 << 20;
const BLOCK: u64 = 4096;
/// Another page than [`DATA`].
const OTHER: u64 = 0x10000;

fn serve(folder: TempDir, is_new: bool) -> Daemon {
    let place = |name: &str| folder.path().join(name);
    if is_new {
        for device in ["slow", "fast"] {
            File::create(place(device)).unwrap().set_len(DEVICE_BYTES).unwrap();
        }
    }
    let disk = DiskTable {
        cache: Some(Size(8 << 20)),
        socket: Some(place("a")),
        queues: 1,
        ..DiskTable::new("a".to_owned(), 16 << 20)
    };
    let config = Config {
        slow: Some(common::file(&place("slow"))),
        fast: Some(common::file(&place("fast"))),
        cache: CacheTable { free_target: 300, ..CacheTable::default() },
        scheduler: common::scheduler(&FIFO),
        limits: Limits { max_request: Size(256 << 10), ..Limits::default() },
        ..Config::new(vec![disk])
    };
    Daemon::of_config(folder, config, is_new).unwrap()
}

/// A cached disk of which nothing is cached, and each block of the slow device says where it is.
fn cold() -> Daemon {
    let folder = serve(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), true).stop();
    let slow = OpenOptions::new().write(true).open(folder.path().join("slow")).unwrap();
    for at in (LABELS_BYTES..DEVICE_BYTES).step_by(4096) {
        slow.write_all_at(&filled(at), at).unwrap();
    }
    serve(folder, false)
}

fn filled(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(512)
}

/// Makes the request of this number, the first or the second, available.
fn begin(client: &mut Client, number: u16, kind: u32, sector: u64, data: &[(u64, u32)]) {
    let (header, status) = (HEADER + 64 * u64::from(number), STATUS + u64::from(number));
    client.map.write_obj(kind, GuestAddress(header)).unwrap();
    client.map.write_obj(sector, GuestAddress(header + 8)).unwrap();
    client.map.write_obj(0xffu8, GuestAddress(status)).unwrap();
    let head = 4 * number;
    let into = if kind == 1 { 0 } else { WRITE };
    let mut chain = vec![(header, 16, NEXT, head + 1)];
    for (place, (address, len)) in (2..).zip(data) {
        chain.push((*address, *len, NEXT | into, head + place));
    }
    chain.push((status, 1, WRITE, 0));
    assert!(chain.len() <= 4, "a request has four descriptors");
    client.describe(u64::from(head) * 16, &chain);
    client.offer(head, 0);
}

/// Waits for all that was made available, and that it went well.
fn end(client: &Client, requests: u16) {
    let begun = Instant::now();
    while client.used() != client.available {
        assert!(begun.elapsed() < LIMIT, "no answer");
        thread::yield_now();
    }
    for number in 0..requests {
        let status: u8 = client.map.read_obj(GuestAddress(STATUS + u64::from(number))).unwrap();
        assert_eq!(status, 0, "request {number}");
    }
}

fn ask(client: &mut Client, kind: u32, sector: u64, data: &[(u64, u32)]) {
    begin(client, 0, kind, sector, data);
    end(client, 1);
}

/// Reads a block into a page of its own.
fn read(client: &mut Client, block: u64) -> Vec<u8> {
    ask(client, 0, block * 8, &[(OTHER, 4096)]);
    let mut bytes = vec![0; 4096];
    client.map.read_slice(&mut bytes, GuestAddress(OTHER)).unwrap();
    bytes
}

/// Where on the slow device the disk begins: what its last block says.
fn begins(client: &mut Client) -> u64 {
    let last = (16 << 20) / BLOCK - 1;
    let found = u64::from_le_bytes(read(client, last)[..8].try_into().unwrap());
    assert!(found >= LABELS_BYTES, "the disk begins among the labels");
    found - last * BLOCK
}

/// Ends a thread beside also where the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn holds(client: &mut Client, begins: u64, block: u64) {
    let (found, wanted) = (read(client, block), filled(begins + block * BLOCK));
    assert!(found == wanted, "block {block} reads as {:x?}, is {:x?}", &found[..8], &wanted[..8]);
}

#[test]
fn a_page_named_twice_is_not_what_is_cached() {
    let daemon = cold();
    let mut client = Client::connect(&daemon.path("a"));
    let begins = begins(&mut client);
    for block in (0..80).step_by(2) {
        ask(&mut client, 0, block * 8, &[(DATA, 4096), (DATA, 4096)]);
        holds(&mut client, begins, block);
        holds(&mut client, begins, block + 1);
        // What a part of it is written over stays as it is.
        client.map.write_slice(&filled(7), GuestAddress(DATA)).unwrap();
        ask(&mut client, 1, block * 8 + 9, &[(DATA, 512)]);
        let mut wanted = filled(begins + (block + 1) * BLOCK);
        wanted[512..1024].copy_from_slice(&filled(7)[..512]);
        assert!(read(&mut client, block + 1) == wanted, "block {block} after a part of it was written");
    }
}

#[test]
fn two_reads_in_flight_into_one_page_cache_what_is_on_the_disk() {
    let daemon = cold();
    let mut client = Client::connect(&daemon.path("a"));
    let begins = begins(&mut client);
    for block in 0..80 {
        begin(&mut client, 0, 0, block * 8, &[(DATA, 4096)]);
        begin(&mut client, 1, 0, (1000 + block) * 8, &[(DATA, 4096)]);
        end(&client, 2);
        holds(&mut client, begins, block);
        holds(&mut client, begins, 1000 + block);
    }
}

#[test]
fn a_page_that_changes_all_the_time_is_stored_as_it_is_summed() {
    const BLOCKS: u64 = 200;
    let daemon = cold();
    let mut client = Client::connect(&daemon.path("a"));
    let begins = begins(&mut client);
    let (map, ended) = (client.map.clone(), AtomicBool::new(false));
    let mut written = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 0x5c00u64.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                map.write_slice(&filled(value), GuestAddress(DATA)).unwrap();
            }
        });
        let _ends = Ends(&ended);
        for block in 0..BLOCKS {
            ask(&mut client, 0, block * 8, &[(DATA, 4096)]);
            holds(&mut client, begins, block);
            // A whole block, or a part of one.
            let (sector, len) = if block % 2 == 0 { (0, 4096) } else { (3, 1024) };
            ask(&mut client, 1, (1000 + block) * 8 + sector, &[(DATA, len)]);
            let found = read(&mut client, 1000 + block);
            assert!(found == read(&mut client, 1000 + block), "block {block} is not twice the same");
            written.push(found);
        }
    });
    drop(client);
    let daemon = serve(daemon.stop(), false);
    let mut client = Client::connect(&daemon.path("a"));
    for (block, found) in (0..).zip(&written) {
        holds(&mut client, begins, block);
        assert!(read(&mut client, 1000 + block) == *found, "block {block} after another start");
    }
}
