//! `virtbench fence` with several pools in one configuration: a fence and a daemon for each, and none disturbs another.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::power::disk::PowerDisk;
use crate::support::fence::{Daemon, Fence, made, refused};
use crate::support::{Finished, children, finish, is_alive, signal, signal_pid, virtbench, wait_for};

const TWO: &str = r#"# Ours.
[cache]
free_target = 300
memory = "@"
[scheduler]
name = "VirtualFence"
slot_ms = 10.0
[limits]
max_request = "256 KiB"

[pool.disks]
metrics = "127.0.0.1:0"
control = "@/disks.control"
[pool.disks.slow]
device = "file:@/SLOW" # large
[pool.disks.fast]
device = "file:@/FAST"
[pool.disks.nbd]
listen = "unix:@/disks.nbd"

[pool.ssd.slow]
device = "file:@/SLOW2"
[pool.ssd.fast]
device = "file:@/FAST2"
[pool.ssd.scheduler]
name = "Hybrid/Partitioned"
[pool.ssd.nbd]
listen = "unix:@/ssd.nbd"

[[disk]]
name = "a"
pool = "disks"
size = "16 MiB"
cache = "4 MiB"
socket = "@/A"
export = "a"
[[disk]]
name = "b"
pool = "ssd"
size = "16 MiB"
cache = "4 MiB"
socket = "@/B"
export = "b"
"#;

const WRITE: [&str; 9] =
    ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB", "--flush-every", "20"];

fn configured(config: &str) -> Fence {
    let fence = Fence::new("");
    for device in ["SLOW2", "FAST2"] {
        File::create(fence.path(device)).unwrap().set_len(64 << 20).unwrap();
    }
    let folder = fence.path("").display().to_string();
    let text = config.replace('@', folder.trim_end_matches('/'));
    // Its figures are asked for over the control socket.
    fs::write(fence.path("fence.toml"), text.replace("metrics = \"127.0.0.1:0\"\n", "")).unwrap();
    fence
}

fn formatted(config: &str) -> Fence {
    let fence = configured(config);
    let format = fence.command("format", &[]);
    assert_eq!(format.code(), 0, "{format:?}");
    fence
}

/// A daemon that serves both pools, at sockets that are not those of one that is ending.
fn serve(fence: &Fence) -> Daemon {
    let sockets = ["disks.nbd", "ssd.nbd"].map(|name| fence.path(name));
    let before = sockets.each_ref().map(|socket| made(socket));
    let daemon = fence.serve();
    for (socket, before) in sockets.iter().zip(before) {
        wait_for("the socket of a pool", || {
            let now = made(socket);
            (now.is_some() && now != before && UnixStream::connect(socket).is_ok()).then_some(())
        });
    }
    daemon
}

/// Over NBD.
fn begin_load(fence: &Fence, pool: &str, disk: &str, more: &[&str]) -> Child {
    let socket = fence.path(&format!("{pool}.nbd"));
    let target = format!("nbd+unix:///{disk}?socket={}", socket.display());
    let ledger = fence.path(&format!("{disk}.nbd.ledger"));
    virtbench()
        .args(["load", "--target", &target, "--json", "--allow-overwrite", "--seed", "7", "--ramp", "0s"])
        .args(["--ledger", ledger.to_str().unwrap()])
        .args(if more.contains(&"--size") { &[][..] } else { &["--size", "16MiB"] })
        .args(more)
        .spawn()
        .unwrap()
}

fn load(fence: &Fence, pool: &str, disk: &str, more: &[&str]) -> Finished {
    finish(begin_load(fence, pool, disk, more))
}

fn verified(fence: &Fence) {
    for (pool, disk) in [("disks", "a"), ("ssd", "b")] {
        let read = load(fence, pool, disk, &["--verify-only", "--size", "1MiB"]);
        assert_eq!(read.code(), 0, "{disk}: {read:?}");
        assert!(read.json()["blocks_checked"].as_u64().unwrap() > 0, "{disk}: {read:?}");
    }
}

/// The process that serves a pool.
fn daemon_of(supervisor: u32, pool: &str) -> Option<u32> {
    let words = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let serves = |pid: u32| words(pid).contains(&format!("--pool\0{pool}\0"));
    children(supervisor).into_iter().map(|(pid, _)| pid).find(|&pid| serves(pid) && is_alive(pid))
}

/// No socket and no log in memory.
fn nothing_is_left(fence: &Fence) {
    let left: Vec<String> = fs::read_dir(fence.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".ledger") && !name.ends_with(".toml"))
        .filter(|name| !["SLOW", "FAST", "SLOW2", "FAST2"].contains(&name.as_str()))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn each_pool_is_formatted_served_shown_inspected_and_drained() {
    let fence = formatted(TWO);
    let again = fence.command("format", &[]);
    refused(&again, 3, "pool disks: ");
    refused(&again, 3, "pool ssd: ");
    refused(&fence.command("format", &["--pool", "tape"]), 2, "there is no such pool");
    assert_eq!(fence.command("format", &["--pool", "ssd", "--force"]).code(), 0);

    let daemon = serve(&fence);
    let pids = ["disks", "ssd"].map(|pool| daemon_of(daemon.id(), pool).unwrap());
    for (pool, disk) in [("disks", "a"), ("ssd", "b")] {
        let wrote = load(&fence, pool, disk, &WRITE);
        assert_eq!(wrote.code(), 0, "{disk}: {wrote:?}");
    }
    verified(&fence);
    let other = load(&fence, "disks", "b", &["--time", "100ms"]);
    assert_ne!(other.code(), 0, "a disk is reached at its own pool: {other:?}");

    let status = fence.command("status", &["--json"]).json();
    let disks = status["disks"].as_array().unwrap().iter();
    let disks: Vec<_> =
        disks.map(|disk| (disk["pool"].as_str().unwrap(), disk["disk"].as_str().unwrap())).collect();
    assert_eq!(disks, [("disks", "a"), ("ssd", "b")]);
    let table = fence.command("status", &[]).stdout;
    assert!(table.contains("disks: a") && table.contains("ssd: b"), "{table}");
    refused(&fence.command("status", &["--raw"]), 2, "give --pool with one of disks, ssd");
    let raw = fence.command("status", &["--raw", "--pool", "ssd"]).stdout;
    assert!(raw.contains("virtbench_fence_requests_total{pool=\"ssd\",disk=\"b\",kind=\"write\"}"), "{raw}");
    assert!(!raw.contains("disk=\"a\"") && raw.ends_with("# EOF\n"), "{raw}");

    let ended = daemon.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.stderr.contains("virtbench fence: pool ssd: disk b: vhost-user-blk at "), "{ended:?}");
    assert!(pids.iter().all(|&pid| !is_alive(pid)), "{pids:?}");
    nothing_is_left(&fence);

    let inspected = fence.command("inspect", &["--data", "--json"]).json();
    let pools = inspected["pools"].as_array().unwrap();
    let dirty = |pool: &serde_json::Value| pool["cache"]["partitions"][0]["dirty"].as_u64().unwrap();
    assert!(
        pools.len() == 2 && pools[0]["pool"] == "disks" && pools.iter().all(|pool| dirty(pool) > 0),
        "{inspected:#}"
    );
    let text = fence.command("inspect", &["--pool", "ssd"]).stdout;
    assert!(text.contains("pool ssd\n") && !text.contains("pool disks"), "{text}");
    let drained = fence.command("drain", &[]);
    for pool in ["disks", "ssd"] {
        refused(&drained, 0, &format!("virtbench fence: pool {pool}: "));
    }
    let measured = fence.command("calibrate", &["--time", "100ms", "--json"]);
    assert_eq!(measured.code(), 0, "{measured:?}");
    assert_eq!(measured.json()["pools"][1]["pool"], "ssd");
    refused(&measured, 0, "write under [pool.ssd.scheduler.predict]: file = ");
    for pool in ["disks", "ssd"] {
        assert!(fence.path(&format!("fence.{pool}.predict.toml")).exists(), "{pool}");
    }
    refused(&fence.command("calibrate", &["--out", "x.toml"]), 2, "--out is of one pool");
    let daemon = serve(&fence);
    verified(&fence);
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_pool_whose_daemon_is_killed_is_begun_again_with_all_that_was_flushed_and_the_other_serves_on() {
    let fence = formatted(TWO);
    let daemon = serve(&fence);
    assert_eq!(load(&fence, "disks", "a", &WRITE).code(), 0);
    let other = begin_load(&fence, "ssd", "b", &["--verify", "--read", "50", "--time", "4s"]);
    for _ in 0..2 {
        let first = wait_for("the daemon of the pool", || daemon_of(daemon.id(), "disks"));
        wait_for("its disk", || UnixStream::connect(fence.path("A")).ok());
        signal_pid(first, "KILL");
        wait_for("its next daemon", || daemon_of(daemon.id(), "disks").filter(|&next| next != first));
    }
    wait_for("the disk again", || {
        let read = load(&fence, "disks", "a", &["--verify-only", "--size", "1MiB"]);
        (read.code() == 0).then_some(())
    });
    let other = finish(other);
    assert_eq!(other.code(), 0, "{other:?}");
    let ended = daemon.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
    refused(&ended, 0, "pool disks: its daemon was killed by signal 9; as long as another pool is served");
    assert!(!ended.stderr.contains("pool ssd: its daemon"), "{ended:?}");
    nothing_is_left(&fence);
}

#[test]
fn no_daemon_of_a_pool_outlives_its_supervisor_and_the_next_one_finds_all() {
    let fence = formatted(TWO);
    for round in 0..2 {
        let daemon = serve(&fence);
        for (pool, disk) in [("disks", "a"), ("ssd", "b")] {
            if round > 0 {
                let _ = fs::remove_file(fence.path(&format!("{disk}.nbd.ledger")));
            }
            assert_eq!(load(&fence, pool, disk, &WRITE).code(), 0);
        }
        let pids = ["disks", "ssd"].map(|pool| daemon_of(daemon.id(), pool).unwrap());
        daemon.kill();
        if round > 0 {
            // At once, beside those that are still ending.
            let next = serve(&fence);
            verified(&fence);
            assert_eq!(next.stop().code(), 0);
        }
        wait_for("its daemons to end", || pids.iter().all(|&pid| !is_alive(pid)).then_some(()));
        nothing_is_left(&fence);
    }
    let daemon = serve(&fence);
    verified(&fence);
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_pool_that_cannot_be_served_is_named_tried_again_and_leaves_the_others_alone() {
    let fence = formatted(TWO);
    fs::rename(fence.path("SLOW2"), fence.path("KEPT")).unwrap();
    let daemon = fence.serve();
    assert_eq!(load(&fence, "disks", "a", &WRITE).code(), 0);
    let ended = daemon.stop();
    refused(&ended, 3, "pool ssd: its daemon ended with exit code 3");
    assert!(
        ended.stderr.contains("SLOW2: ") && !ended.stderr.contains("pool disks: its daemon"),
        "{ended:?}"
    );

    let daemon = fence.serve();
    fs::rename(fence.path("KEPT"), fence.path("SLOW2")).unwrap();
    wait_for("the pool", || UnixStream::connect(fence.path("B")).ok());
    assert_eq!(load(&fence, "ssd", "b", &WRITE).code(), 0);
    assert_eq!(daemon.stop().code(), 0);

    for (slow, pool) in [("SLOW", "disks"), ("SLOW2", "ssd")] {
        fs::rename(fence.path(slow), fence.path(&format!("{slow}.kept"))).unwrap();
        // One alone, without a supervisor.
        refused(&fence.command("serve", &["--pool", pool]), 3, &format!("pool {pool}: "));
    }
    let none = fence.command("serve", &[]);
    refused(
        &none,
        3,
        "pool disks: its daemon ended with exit code 3; pool ssd: its daemon ended with exit code 3",
    );
}

#[test]
fn a_device_that_fails_in_one_pool_fails_no_disk_of_another() {
    let faulty = "device = \"file:@/SLOW2\"\nfault = \"eio=100%\"";
    let slow = TWO.replace("device = \"file:@/SLOW2\"", faulty).replace("Hybrid/Partitioned", "HDD+NWC");
    let fence = formatted(&slow);
    let daemon = serve(&fence);
    let good = begin_load(
        &fence,
        "disks",
        "a",
        &["--verify", "--read", "50", "--time", "1s", "--flush-every", "20"],
    );
    let bad = load(&fence, "ssd", "b", &["--read", "0", "--time", "200ms"]);
    assert_eq!(bad.code(), 5, "{bad:?}");
    let good = finish(good);
    assert_eq!(good.code(), 0, "{good:?}");
    let ended = daemon.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
    refused(&ended, 0, "virtbench fence: pool ssd: a device fails: [slow]");
    assert!(!ended.stderr.contains("pool disks: a device fails"), "{ended:?}");
}

#[test]
fn two_supervisors_never_share_a_pool() {
    let fence = formatted(TWO);
    let daemon = serve(&fence);
    let second = fence.command("serve", &[]);
    refused(&second, 3, "in use by another daemon");
    assert_eq!(load(&fence, "ssd", "b", &WRITE).code(), 0);
    refused(&fence.command("format", &["--force", "--pool", "disks"]), 3, "in use by another daemon");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn disks_come_grow_and_go_in_one_pool_while_the_other_serves() {
    let fence = formatted(TWO);
    let daemon = serve(&fence);
    let other =
        begin_load(&fence, "ssd", "b", &["--verify", "--read", "50", "--time", "5s", "--flush-every", "20"]);
    assert_eq!(load(&fence, "disks", "a", &WRITE).code(), 0);
    let third = fence.path("C").display().to_string();
    let add = |more: &[&str]| {
        let words = ["c", "--size", "8MiB", "--cache", "4MiB", "--export", "c"];
        fence.command("add", &[&words[..], more].concat())
    };
    let before = fs::read_to_string(fence.path("fence.toml")).unwrap();
    refused(&add(&["--socket", &third]), 2, "give --pool with one of disks, ssd");
    refused(&add(&["--pool", "tape"]), 2, "--pool tape: there is no such pool");
    let taken = fence.path("B").display().to_string();
    refused(&add(&["--pool", "disks", "--socket", &taken]), 2, "its socket is another's too");
    assert_eq!(fs::read_to_string(fence.path("fence.toml")).unwrap(), before);
    let mut added = add(&["--pool", "disks", "--socket", &third]);
    refused(&added, 0, "disk c is there; the daemon serves it");
    // Again, as after a command that was cut off; its pool is known by now.
    added = add(&["--socket", &third]);
    refused(&added, 2, "there are two of that name");
    assert_eq!(
        load(&fence, "disks", "c", &["--verify", "--read", "0", "--time", "200ms", "--size", "8MiB"]).code(),
        0
    );

    refused(&fence.command("resize", &["c", "--size", "12MiB"]), 0, "the daemon serves it");
    refused(&fence.command("resize", &["d", "--size", "12MiB"]), 2, "there is no disk d");
    refused(
        &fence.command("reslot", &["--slots", "a=2", "--slots", "b=2"]),
        2,
        "disk b is in pool ssd, not in disks",
    );
    refused(&fence.command("reslot", &["--slot-ms", "8"]), 2, "give --pool with one of");
    refused(&fence.command("reslot", &["--slots", "a=2", "--slot-ms", "8"]), 0, "from its next rotation on");
    let text = fs::read_to_string(fence.path("fence.toml")).unwrap();
    let disks = text.split("[pool.ssd").next().unwrap();
    assert!(text.starts_with("# Ours.") && text.contains("slot_ms = 10.0\n"), "{text}");
    assert!(disks.contains("[pool.disks.scheduler]\nslot_ms = 8.0"), "{text}");
    assert!(text.contains("name = \"c\"\nsize = \"12 MiB\"\npool = \"disks\""), "{text}");

    let removed = fence.command("remove", &["c", "--force"]);
    refused(&removed, 0, "disk c is gone");
    refused(&fence.command("remove", &["b", "--force"]), 2, "pool ssd: no [[disk]]: give at least one");
    let other = finish(other);
    assert_eq!(other.code(), 0, "{other:?}");
    verified_a(&fence);
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(fence.command("inspect", &["--data"]).code(), 0);
    refused(&fence.command("reslot", &["--pool", "ssd", "--spare", "1"]), 0, "the next daemon goes by it");
    let daemon = serve(&fence);
    verified_a(&fence);
    assert_eq!(daemon.stop().code(), 0);
    nothing_is_left(&fence);
}

fn verified_a(fence: &Fence) {
    let read = load(fence, "disks", "a", &["--verify-only", "--size", "1MiB"]);
    assert_eq!(read.code(), 0, "{read:?}");
}

/// The kernel lets no process go whose request a device has, so that the device answers once the supervisor has given up.
#[test]
fn a_pool_that_its_device_holds_up_does_not_keep_the_others_from_ending_in_time() {
    let slow = PowerDisk::new(64 << 20);
    let on = format!("buffered:{}", slow.path().display());
    let fence = formatted(&TWO.replace("file:@/SLOW2", &on));
    let (hold, is_held) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let stalled = slow.stall();
            hold.send(()).unwrap();
            thread::sleep(Duration::from_secs(24));
            drop(stalled);
        });
        is_held.recv().unwrap();
        let config = fence.path("fence.toml");
        let supervisor = virtbench().args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
        wait_for("the other pool", || UnixStream::connect(fence.path("A")).ok());
        let served = wait_for("its daemon", || daemon_of(supervisor.id(), "disks"));
        let held = wait_for("the daemon that is held up", || daemon_of(supervisor.id(), "ssd"));
        let waits_for = format!("/proc/{held}/wchan");
        wait_for("it to be held up", || {
            fs::read_to_string(&waits_for).unwrap().contains("request_wait_answer").then_some(())
        });
        signal(&supervisor, "TERM");
        wait_for("the other pool to end", || (!is_alive(served)).then_some(()));
        assert!(is_alive(held));
        let ended = finish(supervisor);
        refused(&ended, 1, "virtbench fence: pool ssd: not ended after");
        refused(&ended, 1, "pool ssd: its daemon");
    });
    nothing_is_left(&fence);
}
