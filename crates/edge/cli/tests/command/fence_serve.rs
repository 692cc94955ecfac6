//! `virtbench fence serve` as a user runs it, with `virtbench load vhost-user:` as its client.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::support::fence::{CACHED, Fence, PLAIN, refused};
use crate::support::{LIMIT, finish, wait_for};

#[test]
fn a_load_over_vhost_user_arrives_verified_and_at_its_place() {
    let fence = Fence::formatted(PLAIN);
    let daemon = fence.serve();
    let mixed =
        ["--verify", "--read", "50", "--outstanding", "32", "--workers", "4", "--time", "1s", "--trim", "5"];
    let load = fence.load("A", &[&mixed[..], &["--flush-every", "20"]].concat());
    assert_eq!(load.code(), 0, "{load:?}");
    let big =
        ["--verify", "--read", "0", "--bs", "512k", "--outstanding", "4", "--time", "1s", "--random", "0"];
    assert_eq!(fence.load("A", &big).code(), 0);
    let stopped = daemon.stop();
    assert_eq!(stopped.code(), 0, "{stopped:?}");
    assert!(!fence.path("A").exists());
    let slow = File::open(fence.path("SLOW")).unwrap();
    let mut bytes = vec![0; 16 << 20];
    slow.read_exact_at(&mut bytes, 1 << 20).unwrap();
    assert!(bytes.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "a block was not written");
    slow.read_exact_at(&mut bytes[..1 << 20], 17 << 20).unwrap();
    assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0), "something was written beyond the disk");
}

#[test]
fn a_cached_disk_survives_kills_under_a_verified_load() {
    survives_kills(&["--flush-every", "25"], 88_172_645_463_325_252, |ledger| flushes(ledger) > 0, |_| ());
}

/// Where a ledger says how many flushes have been answered, in bytes.
const FLUSHED_AT: u64 = 4092;

/// How many flushes a ledger knows of.
pub fn flushes(ledger: &Path) -> u32 {
    let mut flushed = [0; 4];
    let read = fs::File::open(ledger).and_then(|file| file.read_exact_at(&mut flushed, FLUSHED_AT));
    read.map_or(0, |()| u32::from_ne_bytes(flushed))
}

/// Whether a write has been answered: of each block the first third of the words holds two flags and how many were.
fn has_answers(ledger: &Path) -> bool {
    let bytes = fs::read(ledger).unwrap_or_default();
    let words = bytes.get(4096..).unwrap_or_default().as_chunks::<4>().0;
    words.iter().take(words.len() / 3).any(|word| u32::from_ne_bytes(*word) << 2 != 0)
}

/// Nothing is flushed, and everything that was answered must be there: the ledger is made to say that all of it was.
#[test]
fn a_cached_disk_has_what_was_answered_after_kills_without_a_flush() {
    survives_kills(&[], 362_436_069_362_436_069, has_answers, |ledger| {
        assert_eq!(flushes(ledger), 0, "something was flushed");
        let ledger = fs::OpenOptions::new().write(true).open(ledger).unwrap();
        ledger.write_all_at(&(u32::MAX - 1).to_ne_bytes(), FLUSHED_AT).unwrap();
    });
}

/// A daemon is killed under a load again and again, and sometimes the next one at once. No kill comes before the ledger has
/// something to hold the disk to, as `has_begun` tells; `claim` changes what it says before it is checked.
fn survives_kills(flush: &[&str], seed: u64, has_begun: impl Fn(&Path) -> bool, claim: impl Fn(&Path)) {
    let fence = Fence::formatted(CACHED);
    let mut random = seed;
    // `make soak` does it more often.
    let kills = std::env::var("VIRTBENCH_KILLS").map_or(10, |kills| kills.parse().expect("VIRTBENCH_KILLS"));
    for round in 0..kills {
        let daemon = fence.serve();
        let _ = fs::remove_file(fence.path("A.ledger"));
        let write = ["--verify", "--read", "30", "--outstanding", "16", "--time", "60s"];
        let mut load = fence.begin_load("A", &[&write, flush].concat());
        wait_for("a write or a flush", || has_begun(&fence.path("A.ledger")).then_some(()));
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_millis(100 + random % 900));
        daemon.kill();
        load.kill().unwrap();
        load.wait().unwrap();
        if round % 3 == 0 {
            fence.serve().kill();
        }
        let daemon = fence.serve();
        claim(&fence.path("A.ledger"));
        let check = fence.load("A", &["--verify-only"]);
        assert_eq!(check.code(), 0, "round {round}: {check:?}");
        assert!(check.json()["blocks_checked"].as_u64().unwrap() > 0, "round {round}: {check:?}");
        assert_eq!(daemon.stop().code(), 0);
    }
}

#[test]
fn what_would_mix_up_data_is_refused_with_a_reason() {
    let fence = Fence::new(CACHED);
    let serve = |fence: &Fence| fence.command("serve", &[]);
    refused(&serve(&fence), 3, "format it first");
    fs::write(fence.path("SLOW"), vec![1; 64 << 20]).unwrap();
    refused(&fence.command("format", &[]), 3, "--force");
    assert_eq!(fence.command("format", &["--force"]).code(), 0);

    let daemon = fence.serve();
    refused(&serve(&fence), 3, "in use by another daemon");
    // Little enough to stay in the cache.
    let write = ["--verify", "--read", "0", "--time", "500ms", "--size", "1MiB"];
    assert_eq!(fence.load("A", &write).code(), 0);
    daemon.kill();

    // Dirty: the fast device has what the slow one has not.
    refused(&fence.command("format", &[]), 3, "not yet on it");
    fence.configure(&CACHED.replacen("16 MiB", "12 MiB", 1));
    refused(&serve(&fence), 3, "disk 0 was a of 16777216 bytes");
    fence.configure(&CACHED.replacen("4 MiB", "6 MiB", 1));
    refused(&serve(&fence), 3, "unwritten blocks and partitions");
    fence.configure(&CACHED.replacen("4 MiB", "4 Mib/s", 1));
    refused(&serve(&fence), 2, "line");

    // The slow device of another fence.
    let other = Fence::formatted(CACHED);
    fs::rename(fence.path("SLOW"), fence.path("KEPT")).unwrap();
    fs::copy(other.path("SLOW"), fence.path("SLOW")).unwrap();
    fence.configure(CACHED);
    refused(&serve(&fence), 3, "knows nothing");
    fs::rename(fence.path("KEPT"), fence.path("SLOW")).unwrap();

    // The socket of another server, with devices of its own.
    let daemon = fence.serve();
    let text = fs::read_to_string(other.path("fence.toml")).unwrap();
    let (own, foreign) = (other.path("A"), fence.path("A"));
    let text = text.replace(&format!("{:?}", own), &format!("{:?}", foreign));
    fs::write(other.path("fence.toml"), text).unwrap();
    refused(&serve(&other), 3, "another server is listening");
    assert_eq!(fence.load("A", &["--verify-only", "--size", "1MiB"]).code(), 0);
    drop(daemon);
}

#[test]
fn a_second_client_is_sent_away_and_a_silent_one_harms_nobody() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let silent = UnixStream::connect(fence.path("B")).unwrap();
    let begun = fence.begin_load("A", &["--time", "3s"]);
    std::thread::sleep(Duration::from_secs(1));
    let second = UnixStream::connect(fence.path("A")).unwrap();
    second.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(
        std::io::Read::read(&mut &second, &mut [0]).unwrap(),
        0,
        "the second client was not sent away"
    );
    assert_eq!(finish(begun).code(), 0);
    drop(silent);
    // Again, after the first has gone.
    assert_eq!(fence.load("A", &["--time", "200ms"]).code(), 0);
    assert_eq!(fence.load("B", &["--time", "200ms"]).code(), 0);
    drop(daemon);
}
