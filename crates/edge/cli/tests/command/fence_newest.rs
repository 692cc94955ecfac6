//! `virtbench fence serve`, `drain` and `format` where the newest data of a disk may be elsewhere, or damaged.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;

use crate::support::fence::{CACHED, Fence, refused};

const SECOND: [&str; 2] = ["--seed", "8"];

/// The same disks without the cache.
fn uncached() -> String {
    CACHED.replace("Hybrid/Partitioned", "HDD+NWC")
}

fn without_fast() -> String {
    uncached().replace("[fast]\ndevice = \"file:FAST\"\n", "")
}

/// A daemon, and a megabyte written to disk a and flushed; little enough to stay in the cache.
fn write(fence: &Fence, more: &[&str]) {
    let _ = fs::remove_file(fence.path("A.ledger"));
    let daemon = fence.serve();
    let write = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB", "--flush-every", "20"];
    assert_eq!(fence.load("A", &[&write[..], more].concat()).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
}

fn written() -> Fence {
    let fence = Fence::formatted(CACHED);
    write(&fence, &[]);
    fence
}

fn is_whole(fence: &Fence, more: &[&str]) {
    let daemon = fence.serve();
    let check = fence.load("A", &[&["--verify-only", "--size", "1MiB"], more].concat());
    assert_eq!(check.code(), 0, "{check:?}");
    assert!(check.json()["blocks_checked"].as_u64().unwrap() > 0, "{check:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_fence_is_served_without_its_cache_once_that_is_drained_and_not_before() {
    let fence = written();
    for config in [uncached(), without_fast()] {
        fence.configure(&config);
        for command in ["serve", "inspect", "drain"] {
            refused(&fence.command(command, &[]), 3, "may be in a cache");
        }
    }
    fence.configure(CACHED);
    is_whole(&fence, &[]);
    let older = fs::read(fence.path("FAST")).unwrap();
    let drained = fence.command("drain", &[]);
    assert_eq!(drained.code(), 0, "{drained:?}");
    assert!(drained.stderr.contains(" blocks written from the cache"), "{drained:?}");

    fence.configure(&without_fast());
    is_whole(&fence, &[]);
    write(&fence, &SECOND);
    // With the cache again: it is empty, and what was written without it counts.
    fence.configure(CACHED);
    is_whole(&fence, &SECOND);
    fs::write(fence.path("FAST"), older).unwrap();
    for command in ["serve", "inspect", "drain"] {
        refused(&fence.command(command, &[]), 3, "does not hold the cache");
    }
    assert_eq!(fence.command("drain", &["--force"]).code(), 0);
    is_whole(&fence, &SECOND);
}

#[test]
fn an_older_copy_of_either_device_is_refused_and_the_newest_accepted() {
    let fence = written();
    let keep = |name: &str| fs::read(fence.path(name)).unwrap();
    let (slow, fast) = (keep("SLOW"), keep("FAST"));
    write(&fence, &SECOND);
    let newest = [keep("SLOW"), keep("FAST")];
    for (name, older, newest) in [("SLOW", &slow, &newest[0]), ("FAST", &fast, &newest[1])] {
        fs::write(fence.path(name), older).unwrap();
        for command in [&["serve"][..], &["inspect"], &["drain"], &["resize", "a", "--cache", "5MiB"]] {
            refused(&fence.command(command[0], &command[1..]), 3, "is an older copy");
        }
        fs::write(fence.path(name), newest).unwrap();
    }
    is_whole(&fence, &SECOND);
    // Drained since: the cache of before is no longer believed, though it is whole.
    let before = keep("FAST");
    assert_eq!(fence.command("drain", &[]).code(), 0);
    fs::write(fence.path("FAST"), before).unwrap();
    refused(&fence.command("serve", &[]), 3, "knows nothing");
}

#[test]
fn format_refuses_whatever_holds_a_fence() {
    let fence = written();
    refused(&fence.command("format", &[]), 3, "not yet on it");
    // Every disk behind one that grew would be another's.
    fence.configure(&CACHED.replacen("16 MiB", "20 MiB", 1));
    refused(&fence.command("format", &[]), 3, "not yet on it");
    fence.configure(CACHED);
    assert_eq!(fence.command("drain", &[]).code(), 0);
    refused(&fence.command("format", &[]), 3, "the empty cache of a fence");
    fence.configure(&without_fast());
    refused(&fence.command("format", &[]), 3, "the disks of a fence (a, b)");

    // The fast device died and was replaced.
    fence.configure(CACHED);
    is_whole(&fence, &[]);
    File::create(fence.path("FAST")).unwrap().set_len(64 << 20).unwrap();
    refused(&fence.command("format", &[]), 3, "the disks of a fence (a, b)");
    refused(&fence.command("serve", &[]), 3, "`virtbench fence drain --force`");
    refused(&fence.command("drain", &[]), 3, "`virtbench fence drain --force`");
    let given_up = fence.command("drain", &["--force"]);
    assert_eq!(given_up.code(), 0, "{given_up:?}");
    assert!(given_up.stderr.contains("given up"), "{given_up:?}");
    // The disks had everything.
    is_whole(&fence, &[]);
    assert_eq!(fence.command("format", &["--force"]).code(), 0);
    drop(fence.serve());
}

/// Where the log of the first partition begins, and how many blocks it has.
const LOG_AT: usize = 8192;
const LOG_BLOCKS: usize = 34;

#[test]
fn a_damaged_device_is_refused_or_served_as_it_was_written() {
    // `make soak` flips more.
    let flips = std::env::var("VIRTBENCH_FLIPS").map_or(12, |flips| flips.parse().expect("VIRTBENCH_FLIPS"));
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let write = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB", "--flush-every", "5"];
    assert_eq!(fence.load("A", &write).code(), 0);
    daemon.kill();
    is_whole(&fence, &[]);
    let whole = ["SLOW", "FAST"].map(|name| (name, fs::read(fence.path(name)).unwrap()));
    let log = LOG_AT..LOG_AT + LOG_BLOCKS * 4096;
    // Labels, superblocks, the log.
    let parts = [(0, 0..200), (0, 65536..65736), (1, 0..400), (1, 4096..4496), (1, log.clone())];
    let (mut random, mut refusals) = (88_172_645_463_325_252_u64, 0);
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % limit as u64).unwrap()
    };
    for flip in 0..flips {
        let (device, part) = &parts[if flip < parts.len() { flip } else { 4 }];
        for (name, bytes) in &whole {
            fs::write(fence.path(name), bytes).unwrap();
        }
        let (name, bytes) = &whole[*device];
        let at = loop {
            let at = part.start + below(part.len());
            if bytes[at / 512 * 512..][..512].iter().any(|byte| *byte != 0) {
                break at;
            }
        };
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << below(8);
        fs::write(fence.path(name), bytes).unwrap();
        match fence.try_serve() {
            Ok(daemon) => {
                let check = fence.load("A", &["--verify-only", "--size", "1MiB"]);
                assert_eq!(check.code(), 0, "byte {at} of {name}: {check:?}");
                drop(daemon);
            }
            Err(ended) => {
                refusals += 1;
                assert!([3, 8].contains(&ended.code()), "byte {at} of {name}: {ended:?}");
            }
        }
    }
    println!("{flips} bits flipped: {refusals} starts refused");
    let mut emptied = whole[1].1.clone();
    emptied[log].fill(0);
    fs::write(fence.path("SLOW"), &whole[0].1).unwrap();
    fs::write(fence.path("FAST"), emptied).unwrap();
    for command in ["inspect", "drain"] {
        refused(&fence.command(command, &[]), 8, "the log is empty, though the cache has been used");
    }
    // Disk b has nothing to do with it.
    let daemon = fence.serve_disk("B");
    assert!(UnixStream::connect(fence.path("A")).is_err(), "disk a is served");
    assert_eq!(fence.load("B", &["--time", "100ms", "--size", "1MiB"]).code(), 0);
    let ended = daemon.stop();
    assert!(ended.stderr.contains("disk a: NOT served: partition 0: the log is empty"), "{ended:?}");
    let drained = fence.command("drain", &["--force"]);
    assert_eq!(drained.code(), 0, "{drained:?}");
    assert!(
        drained.stderr.contains("given up: partition 0") && drained.stderr.contains("disk a"),
        "{drained:?}"
    );
    drop(fence.serve());
}
