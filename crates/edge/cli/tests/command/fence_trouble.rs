//! `virtbench fence` where devices fail for a while or for good: nothing is given up that nobody named.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fuser::Errno;

use crate::power::disk::PowerDisk;
use crate::support::fence::{CACHED, Fence, refused};
use crate::support::{finish, signal, signal_pid, virtbench, wait_for};

/// A fence whose slow device is that one.
fn on(slow: &PowerDisk) -> Fence {
    let fence = Fence::new(&CACHED.replace("file:SLOW", &format!("buffered:{}", slow.path().display())));
    let format = fence.command("format", &[]);
    assert_eq!(format.code(), 0, "{format:?}");
    fence
}

const WRITE: [&str; 8] = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB", "--flush-every"];

fn is_whole(fence: &Fence) {
    let daemon = fence.serve();
    let check = fence.load("A", &["--verify-only", "--size", "1MiB"]);
    assert_eq!(check.code(), 0, "{check:?}");
    assert!(check.json()["blocks_checked"].as_u64().unwrap() > 0, "{check:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_forced_drain_gives_up_nothing_because_the_disks_cannot_be_written() {
    let slow = PowerDisk::new(64 << 20);
    let fence = on(&slow);
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &[&WRITE[..], &["20"]].concat()).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
    for errno in [Errno::ENOSPC, Errno::EIO] {
        slow.refuse(Some(errno));
        refused(&fence.command("drain", &["--force"]), 3, "writing back");
    }
    slow.refuse(None);
    is_whole(&fence);
    let drained = fence.command("drain", &["--force"]);
    assert_eq!(drained.code(), 0, "{drained:?}");
    assert!(drained.stderr.contains("the disks have everything"), "{drained:?}");
    is_whole(&fence);
}

#[test]
fn a_forced_drain_names_the_blocks_that_it_gives_up() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &[&WRITE[..], &["20"]].concat()).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
    // Data begins behind the log of 34 blocks; which blocks hold some depends on how much was written.
    let mut bytes = fs::read(fence.path("FAST")).unwrap();
    let data = 8192 + 34 * 4096;
    for block in 0..1024 {
        bytes[data + block * 4096] ^= 1;
    }
    fs::write(fence.path("FAST"), bytes).unwrap();
    refused(&fence.command("drain", &[]), 8, "is damaged");
    let drained = fence.command("drain", &["--force"]);
    assert_eq!(drained.code(), 0, "{drained:?}");
    assert!(drained.stderr.contains("given up: disk a: bytes "), "{drained:?}");
    assert!(drained.stderr.contains("damaged in the cache: the disk has what it had before"), "{drained:?}");
}

#[test]
fn writes_go_on_while_the_slow_device_fails_and_after() {
    let slow = PowerDisk::new(64 << 20);
    let fence = on(&slow);
    let daemon = fence.serve();
    // More than the cache has room for.
    let write = ["--verify", "--read", "0", "--time", "3s", "--size", "8MiB", "--flush-every", "20"];
    let load = fence.begin_load("A", &write);
    let figures = || fence.command("status", &["--raw"]).stdout;
    let stands = |what: &str| {
        let line = format!("virtbench_fence_cache_degraded{{partition=\"0\",state=\"failing\"}} {what}");
        wait_for(&line, || figures().contains(&line).then_some(()));
    };
    slow.refuse(Some(Errno::EIO));
    stands("1");
    slow.refuse(None);
    stands("0");
    let loaded = finish(load);
    assert_eq!(loaded.code(), 0, "{loaded:?}");
    assert_eq!(fence.load("A", &["--verify-only", "--size", "8MiB"]).code(), 0);
    let ended = daemon.stop();
    assert_eq!(ended.code(), 0);
    for says in [
        "a device fails: [slow], a write of 4096 bytes",
        "tries it again",
        "works again: nothing of it was lost",
    ] {
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    }
}

/// The kernel lets no process go whose request a device has, so that the device answers once the daemon has given up.
#[test]
fn a_daemon_that_a_device_holds_up_gives_up_in_time_and_loses_nothing() {
    let slow = PowerDisk::new(64 << 20);
    let fence = on(&slow);
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &[&WRITE[..], &["20"]].concat()).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
    let (hold, is_held) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let stalled = slow.stall();
            hold.send(()).unwrap();
            thread::sleep(Duration::from_secs(22));
            drop(stalled);
        });
        is_held.recv().unwrap();
        let config = fence.path("fence.toml");
        let daemon = virtbench().args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
        // Its first thread reads what the device is.
        let waits_for = format!("/proc/{}/wchan", daemon.id());
        let is_held = || fs::read_to_string(&waits_for).unwrap().contains("request_wait_answer");
        wait_for("the first thread to be held up", || is_held().then_some(()));
        signal(&daemon, "TERM");
        let ended = finish(daemon);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(ended.stderr.contains("gives up as if killed; what was answered is kept"), "{ended:?}");
    });
    is_whole(&fence);
}

#[test]
fn what_was_answered_is_not_passed_by_for_another_folder_in_memory() {
    let fence = Fence::formatted(CACHED);
    let there = fs::read_to_string(fence.path("fence.toml")).unwrap();
    let other = fence.path("other");
    fs::create_dir(&other).unwrap();
    let folder = format!("memory = {:?}", fence.path("fence.toml").parent().unwrap());
    assert!(there.contains(&folder), "{there}");
    let elsewhere = there.replace(&folder, &format!("memory = {other:?}"));
    // A daemon that is killed just behind a commit leaves nothing that is not on the device.
    let left_something = (0..20).any(|_| {
        let daemon = fence.serve();
        let write = ["--verify", "--read", "0", "--time", "20s", "--size", "1MiB", "--flush-every", "20"];
        let load = fence.begin_load("A", &write);
        let figures = || fence.command("status", &["--raw"]).stdout;
        let written = |text: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with("virtbench_fence_requests_total{disk=\"a\",kind=\"write\"}"))?;
            line.rsplit(' ').next()?.parse::<f64>().ok().filter(|writes| *writes > 50.0)
        };
        wait_for("writes", || written(&figures()));
        // First: what fails once the daemon has gone is not known to be written.
        signal(&load, "KILL");
        daemon.kill();
        finish(load);
        fs::write(fence.path("fence.toml"), &elsewhere).unwrap();
        let refused = fence.try_serve().map(drop).is_err();
        if !refused {
            let _ = fs::remove_file(fence.path("A.ledger"));
            fs::write(fence.path("fence.toml"), &there).unwrap();
        }
        refused
    });
    assert!(left_something, "twenty kills, and nothing was left");
    for command in [&["serve"][..], &["drain"], &["drain", "--force"], &["resize", "a", "--cache", "5MiB"]] {
        refused(&fence.command(command[0], &command[1..]), 3, "serve it with cache.memory = ");
    }
    fs::write(fence.path("fence.toml"), &there).unwrap();
    is_whole(&fence);
    // Nothing is left there after a stop.
    fs::write(fence.path("fence.toml"), &elsewhere).unwrap();
    is_whole(&fence);
}

#[test]
fn a_disk_that_moved_is_where_it_is_whichever_copy_of_the_label_is_damaged() {
    for copy in [0, 1] {
        let fence = Fence::formatted(&CACHED.replace("Hybrid/Partitioned", "HDD+NWC"));
        assert_eq!(fence.command("resize", &["a", "--size", "20MiB"]).code(), 0);
        let daemon = fence.serve();
        assert_eq!(fence.load("A", &[&WRITE[..], &["20"]].concat()).code(), 0);
        assert_eq!(daemon.stop().code(), 0);
        let mut bytes = fs::read(fence.path("SLOW")).unwrap();
        bytes[copy * 65536 + 40] ^= 1;
        fs::write(fence.path("SLOW"), bytes).unwrap();
        is_whole(&fence);
    }
}

#[test]
fn a_hang_up_does_not_end_a_daemon() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    signal_pid(daemon.id(), "HUP");
    assert_eq!(fence.load("A", &["--time", "200ms", "--size", "1MiB"]).code(), 0);
    let ended = daemon.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
}

#[test]
fn more_disks_than_a_cache_or_a_label_has_room_for_are_refused_by_their_number() {
    let disks = |count: usize, more: &str| -> String {
        (0..count)
            .map(|n| format!("[[disk]]\nname = \"disk-{n}\"\nsize = 4096\nsocket = \"/tmp/{n}\"\n{more}"))
            .collect()
    };
    let cached = "[slow]\ndevice = \"file:SLOW\"\n[fast]\ndevice = \"file:FAST\"\n[scheduler]\nname = \"Hybrid/Shared\"\n";
    let fence = Fence::new(&format!("{cached}{}", disks(129, "cache = \"1 MiB\"\n")));
    fs::File::options().write(true).open(fence.path("SLOW")).unwrap().set_len(4 << 30).unwrap();
    refused(&fence.command("format", &[]), 2, "129 virtual disks: a cache has room for 128");
    let plain = "[slow]\ndevice = \"file:SLOW\"\n[scheduler]\nname = \"HDD+NWC\"\n";
    let fence = Fence::new(&format!("{plain}{}", disks(1000, "")));
    fs::File::options().write(true).open(fence.path("SLOW")).unwrap().set_len(4 << 30).unwrap();
    refused(&fence.command("format", &[]), 3, "1000 disks need");
}

#[test]
fn a_disk_comes_and_goes_and_the_others_keep_what_they_have() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &[&WRITE[..], &["20"]].concat()).code(), 0);
    let third = fence.path("C");
    let add =
        ["c", "--size", "8MiB", "--cache", "4MiB", "--bypass", "1MiB", "--socket", third.to_str().unwrap()];
    assert_eq!(daemon.stop().code(), 0);
    refused(&fence.command("add", &["a", "--size", "8MiB", "--cache", "4MiB", "--export", "a"]), 2, "disk a");
    refused(
        &fence.command("add", &["c", "--size", "80MiB", "--cache", "4MiB", "--socket", "/c"]),
        3,
        "the largest free one",
    );
    let added = fence.command("add", &add);
    assert_eq!(added.code(), 0, "{added:?}");
    assert!(added.stderr.contains("blocks written from the cache"), "{added:?}");
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &["--verify-only", "--size", "1MiB"]).code(), 0);
    assert_eq!(fence.load("C", &[&WRITE[..], &["20"]].concat()).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
    refused(&fence.command("remove", &["b"]), 2, "--force");
    refused(&fence.command("remove", &["d", "--force"]), 2, "there is no disk d");
    let removed = fence.command("remove", &["b", "--force"]);
    assert_eq!(removed.code(), 0, "{removed:?}");
    let text = fs::read_to_string(fence.path("fence.toml")).unwrap();
    assert!(!text.contains("name = \"b\"") && text.contains("name = \"c\""), "{text}");
    assert!(text.contains("bypass = \"1 MiB\""), "{text}");
    let daemon = fence.serve();
    for disk in ["A", "C"] {
        assert_eq!(fence.load(disk, &["--verify-only", "--size", "1MiB"]).code(), 0, "{disk}");
    }
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(fence.command("inspect", &["--data"]).code(), 0);
}

#[test]
fn a_disk_comes_and_goes_while_a_confined_daemon_serves_the_others() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let load = fence.begin_load("A", &["--verify", "--read", "50", "--time", "6s"]);
    let third = fence.path("C");
    let add = ["c", "--size", "8MiB", "--cache", "4MiB", "--socket", third.to_str().unwrap()];
    let before = fs::read_to_string(fence.path("fence.toml")).unwrap();
    for _ in 0..2 {
        let added = fence.command("add", &add);
        assert_eq!(added.code(), 0, "{added:?}");
        assert!(added.stderr.contains("disk c is there; the daemon serves it"), "{added:?}");
        // As if the command had been killed before it changed the file: the same again completes it.
        fs::write(fence.path("fence.toml"), &before).unwrap();
    }
    assert_eq!(fence.command("add", &add).code(), 0);
    assert_eq!(fence.load("C", &[&WRITE[..], &["20"]].concat()).code(), 0);
    let before = fs::read_to_string(fence.path("fence.toml")).unwrap();
    for _ in 0..2 {
        fs::write(fence.path("fence.toml"), &before).unwrap();
        let removed = fence.command("remove", &["b", "--force"]);
        assert_eq!(removed.code(), 0, "{removed:?}");
    }
    assert!(!fence.path("B").exists(), "its socket goes");
    refused(&fence.command("remove", &["a", "--force"]), 3, "the control socket is named after another disk");
    let load = finish(load);
    assert_eq!(load.code(), 0, "{load:?}");
    let text = fs::read_to_string(fence.path("fence.toml")).unwrap();
    assert!(!text.contains("name = \"b\"") && text.contains("name = \"c\""), "{text}");
    assert_eq!(fence.load("C", &["--verify", "--read", "50", "--time", "300ms", "--size", "1MiB"]).code(), 0);
    // What was answered and never flushed is in the new cache's log in memory.
    daemon.kill();
    let daemon = fence.serve();
    for (disk, size) in [("A", "16MiB"), ("C", "1MiB")] {
        let read = fence.load(disk, &["--verify-only", "--size", size]);
        assert_eq!(read.code(), 0, "{read:?}");
    }
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(fence.command("inspect", &["--data"]).code(), 0);
    let logs =
        fs::read_dir(fence.path("")).unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(
        logs.filter(|name| name.starts_with("virtbench-fence-")).count(),
        0,
        "no log in memory is left"
    );
}
