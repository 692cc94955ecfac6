//! `virtbench fence inspect`, `calibrate`: what is done to devices while nobody serves them.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::support::fence::{CACHED, Fence, refused};

/// Where the log of the first partition begins, and how many blocks it has: 4 MiB are 1024 blocks, 17 chunks.
const LOG_AT: usize = 8192;
const LOG_BLOCKS: usize = 34;

/// A cache with a megabyte of dirty blocks of disk a, left behind by a daemon that was killed.
fn dirty() -> Fence {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let write = ["--verify", "--read", "0", "--time", "500ms", "--size", "1MiB", "--flush-every", "20"];
    assert_eq!(fence.load("A", &write).code(), 0);
    daemon.kill();
    fence
}

#[test]
fn what_a_cache_holds_is_told_and_nothing_is_written() {
    let fence = Fence::new(CACHED);
    refused(&fence.command("inspect", &[]), 3, "format it first");
    assert_eq!(fence.command("format", &[]).code(), 0);
    let empty = fence.command("inspect", &["--json"]);
    assert_eq!(empty.code(), 0, "{empty:?}");
    assert_eq!(empty.json()["cache"]["partitions"][0]["free"], 1024);

    let fence = dirty();
    let before = [fs::read(fence.path("SLOW")).unwrap(), fs::read(fence.path("FAST")).unwrap()];
    let found = fence.command("inspect", &["--json", "--data"]);
    assert_eq!(found.code(), 0, "{found:?}");
    let part = &found.json()["cache"]["partitions"][0];
    assert_eq!(part["disks"][0], "a");
    let of = |name: &str| part[name].as_u64().unwrap();
    assert!(of("dirty") > 0 && of("dirty") == part["dirty_by_disk"][0].as_u64().unwrap(), "{part}");
    assert_eq!((of("used"), of("blocks")), (of("checked"), of("used") + of("free") + of("retiring")));
    assert!(of("generation") > of("dirty") && of("commit") > 0, "{part}");
    let text = fence.command("inspect", &[]);
    assert!(text.stdout.contains("consistent") && text.stdout.contains("disk b: 16 MiB"), "{text:?}");
    let after = [fs::read(fence.path("SLOW")).unwrap(), fs::read(fence.path("FAST")).unwrap()];
    assert!(before == after, "an inspection wrote");

    let daemon = fence.serve();
    refused(&fence.command("inspect", &[]), 3, "in use by another daemon");
    drop(daemon);
    fence.configure(&CACHED.replacen("4 MiB", "6 MiB", 1));
    refused(&fence.command("inspect", &[]), 3, "partitions have [1024, 1024] blocks");
}

#[test]
fn damage_of_log_and_data_has_an_exit_code_of_its_own() {
    let fence = dirty();
    let whole = fs::read(fence.path("FAST")).unwrap();
    let device = fs::OpenOptions::new().write(true).open(fence.path("FAST")).unwrap();
    let put = |at: usize, byte: u8| device.write_all_at(&[byte], at as u64).unwrap();
    let with = |at: usize, options: &[&str]| {
        put(at, whole[at] ^ 3);
        let found = fence.command("inspect", options);
        put(at, whole[at]);
        found
    };
    let codes: Vec<i32> =
        (0..LOG_BLOCKS).map(|block| with(LOG_AT + block * 4096 + 3000, &[]).code()).collect();
    assert!(codes.contains(&8) && codes.iter().all(|code| [0, 8].contains(code)), "{codes:?}");
    // Data begins behind the log; which blocks hold some depends on how much was written.
    let data_at = LOG_AT + LOG_BLOCKS * 4096;
    let all: Vec<_> = (0..1024).step_by(16).map(|block| with(data_at + block * 4096, &["--data"])).collect();
    let found = all.iter().find(|found| found.code() == 8).unwrap_or_else(|| panic!("{all:?}"));
    assert!(found.stdout.contains("of disk 0 is lost"), "{found:?}");
    assert!(found.stderr.contains("copy them"), "{found:?}");
}

#[test]
fn devices_are_calibrated_without_changing_them_and_served_by_what_was_found() {
    let slots = CACHED.replace("Hybrid/Partitioned", "VirtualFence");
    let named = slots.replacen("[limits]", "[scheduler.predict]\nfile = \"found.toml\"\n[limits]", 1);
    let fence = Fence::new(&named);
    let short = ["--time", "100ms", "--json"];
    refused(&fence.command("calibrate", &short), 3, "format it first");
    assert_eq!(fence.command("format", &[]).code(), 0);
    refused(&fence.command("serve", &[]), 2, "fence calibrate");
    fence.configure(&slots);
    let daemon = fence.serve();
    let write = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB"];
    assert_eq!(fence.load("A", &write).code(), 0);
    refused(&fence.command("calibrate", &short), 3, "in use by another daemon");
    assert_eq!(daemon.stop().code(), 0);

    fence.configure(&named);
    let before = [fs::read(fence.path("SLOW")).unwrap(), fs::read(fence.path("FAST")).unwrap()];
    let found = fence.command("calibrate", &short);
    assert_eq!(found.code(), 0, "{found:?}");
    let after = [fs::read(fence.path("SLOW")).unwrap(), fs::read(fence.path("FAST")).unwrap()];
    assert!(before == after, "calibration changed a device");
    let json = found.json();
    assert!(json["slow"]["errors"]["batches"].as_u64().unwrap() >= 50, "{json}");
    // A busy host may leave all of it to one of the two.
    let costs = ["base_us", "per_io_us"].map(|part| json["fast"][part].as_f64().unwrap());
    assert!(costs.iter().sum::<f64>() > 0.0 && costs.iter().all(|cost| *cost >= 0.0), "{json}");
    assert!(json["slow"]["knots"].as_array().unwrap().len() > 2, "{json}");
    let text = fence.command("calibrate", &["--time", "100ms"]);
    assert!(text.stdout.contains("held-out batches") && text.stdout.contains("within 5 ms"), "{text:?}");

    let daemon = fence.serve();
    assert_eq!(fence.load("A", &["--verify-only", "--size", "1MiB"]).code(), 0);
    drop(daemon);
    let other = Fence::formatted(&named);
    fs::copy(fence.path("found.toml"), other.path("found.toml")).unwrap();
    refused(&other.command("serve", &[]), 2, "measured on other devices");
}

#[test]
fn a_disk_is_resized_and_slots_are_given_with_the_configuration() {
    let fence = dirty();
    let daemon = fence.serve();
    refused(&fence.command("resize", &["a", "--size", "20MiB"]), 3, "stop the daemon");
    assert_eq!(daemon.stop().code(), 0);
    refused(&fence.command("resize", &["a", "--size", "12MiB"]), 2, "--force");
    refused(&fence.command("resize", &["a", "--size", "50MiB"]), 3, "the largest free one has");
    refused(&fence.command("resize", &["c", "--size", "50MiB"]), 2, "there is no disk c");
    refused(&fence.command("resize", &["a", "--cache", "70MiB"]), 2, "make it smaller");
    let text = || fs::read_to_string(fence.path("fence.toml")).unwrap();
    let before = text();
    let done = fence.command("resize", &["a", "--size", "20MiB", "--cache", "6MiB"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stderr.contains("written from the cache") && done.stderr.contains("copied"), "{done:?}");
    let expected = before.replacen("16 MiB", "20 MiB", 1).replacen("4 MiB", "6 MiB", 1);
    assert_eq!(text(), expected);
    let found = fence.command("inspect", &["--json"]);
    assert_eq!(found.code(), 0, "{found:?}");
    assert_eq!(found.json()["home"]["disks"][0]["offset_bytes"], 33 << 20);
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &["--verify-only", "--size", "1MiB"]).code(), 0);
    assert_eq!(fence.load("A", &["--verify", "--size", "20MiB", "--time", "300ms"]).code(), 0);
    drop(daemon);

    let slots = ["--slots", "a=2", "--spare", "1", "--slot-ms", "10"];
    assert_eq!(fence.command("reslot", &slots).code(), 0);
    assert!(text().contains("slots = 2") && text().contains("spare_slots = 1"), "{}", text());
    refused(&fence.command("reslot", &["--slots", "c=2"]), 2, "there is no disk c");
    refused(&fence.command("reslot", &[]), 2, "nothing to change");
    drop(fence.serve());
}
