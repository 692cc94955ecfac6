//! `virtbench fence serve` in bad company: what cannot be is refused or survived, with a clear error.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::support::fence::{CACHED, Fence, PLAIN, refused};
use crate::support::{LIMIT, is_alive, signal, virtbench, wait_for};

/// Disk a over vhost-user-blk, b over NBD, figures; over one device that is the whole fence.
const TWO: &str = r#"
metrics = "127.0.0.1:0"
[slow]
device = "file:SLOW"
[scheduler]
name = "pass-through"
[[disk]]
name = "a"
size = "16 MiB"
socket = "A"
[[disk]]
name = "b"
size = "16 MiB"
socket = "B"
"#;

/// A little of disk a in the cache alone.
fn write_and_kill(fence: &Fence) {
    let daemon = fence.serve();
    let write = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB"];
    assert_eq!(fence.load("A", &write).code(), 0);
    daemon.kill();
}

fn is_whole(fence: &Fence) {
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &["--verify-only", "--size", "1MiB"]).code(), 0);
    drop(daemon);
}

#[test]
fn a_cache_of_another_disk_is_refused_and_neither_is_harmed() {
    let (one, other) = (Fence::formatted(CACHED), Fence::formatted(CACHED));
    write_and_kill(&one);
    write_and_kill(&other);
    fs::rename(one.path("FAST"), one.path("KEPT")).unwrap();
    fs::copy(other.path("FAST"), one.path("FAST")).unwrap();
    for command in [&["serve"][..], &["inspect"], &["drain"], &["resize", "a", "--cache", "5MiB"]] {
        refused(&one.command(command[0], &command[1..]), 3, "does not hold the cache");
    }
    assert!(one.command("inspect", &[]).stdout.contains("unknown disk"));
    fs::rename(one.path("KEPT"), one.path("FAST")).unwrap();
    is_whole(&one);
    is_whole(&other);
}

#[test]
fn a_dirty_cache_without_its_disk_waits_for_it() {
    let fence = Fence::formatted(CACHED);
    write_and_kill(&fence);
    fs::rename(fence.path("SLOW"), fence.path("KEPT")).unwrap();
    refused(&fence.command("serve", &[]), 3, "No such file");
    // A new disk in its place is not its disk, and is not made it without a word.
    fs::File::create(fence.path("SLOW")).unwrap().set_len(64 << 20).unwrap();
    refused(&fence.command("serve", &[]), 3, "format it first");
    refused(&fence.command("format", &[]), 3, "not yet on it");
    fs::rename(fence.path("KEPT"), fence.path("SLOW")).unwrap();
    is_whole(&fence);
}

#[test]
fn two_daemons_never_share_a_cache() {
    let (one, other) = (Fence::formatted(CACHED), Fence::formatted(CACHED));
    let daemon = one.serve();
    // Its own disks, its own sockets, and the first one's cache.
    let text = fs::read_to_string(other.path("fence.toml")).unwrap();
    let of = |fence: &Fence| format!("{}", fence.path("FAST").display());
    fs::write(other.path("fence.toml"), text.replace(&of(&other), &of(&one))).unwrap();
    refused(&other.command("serve", &[]), 3, "in use by another daemon");
    refused(&other.command("format", &["--force"]), 3, "in use by another daemon");
    assert_eq!(fence_load(&one), 0);
    drop(daemon);
}

fn fence_load(fence: &Fence) -> i32 {
    fence.load("A", &["--time", "200ms"]).code()
}

#[test]
fn a_full_device_fails_writes_and_other_disks_go_on() {
    let fence = Fence::formatted(TWO);
    let config = fence.path("fence.toml");
    // Of the device's file, what lies behind the end of disk a cannot be written: 17 MiB in blocks of 512 bytes.
    let script = "trap '' XFSZ; ulimit -f 34816; exec \"$0\" fence serve \"$1\"";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_virtbench"), config.to_str().unwrap()])
        .spawn()
        .unwrap();
    wait_for("the sockets", || UnixStream::connect(fence.path("B")).ok().map(drop));
    let write = ["--verify", "--read", "50", "--time", "300ms"];
    let full = fence.load("B", &write);
    assert_eq!(full.code(), 5, "{full:?}");
    assert_eq!(fence.load("B", &["--read", "100", "--time", "200ms"]).code(), 0, "it can still be read");
    assert_eq!(fence.load("A", &write).code(), 0);
    assert!(is_alive(child.id()));
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_client_that_says_nothing_is_sent_away_and_others_are_served_meanwhile() {
    let fence = Fence::formatted(PLAIN);
    let daemon = fence.serve();
    let mut silent = UnixStream::connect(fence.path("A")).unwrap();
    silent.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it was not sent away");
    assert_eq!(fence_load(&fence), 0);
    drop(daemon);
}

#[test]
fn a_daemon_is_confined_once_it_serves_and_needs_no_privileges() {
    let fence = Fence::formatted(TWO);
    let daemon = fence.serve();
    let pid = daemon.id();
    wait_for("the filter", || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        (status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1")).then_some(())
    });
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        assert!(status.contains("Seccomp:\t2"), "{status}");
    }
    assert_eq!(fence_load(&fence), 0);
    assert_eq!(daemon.stop().code(), 0);

    // As nobody, if this is root: files that it may use are all it takes. The folder of this test may be one that only
    // root can enter.
    let fence = Fence::new_in(tempfile::tempdir_in("/var/tmp").unwrap(), TWO);
    assert_eq!(fence.command("format", &[]).code(), 0);
    let config = fence.path("fence.toml");
    let mut command = virtbench();
    if rustix::process::geteuid().is_root() {
        let nobody = std::os::unix::fs::chown::<std::path::PathBuf>;
        let program = fence.path("virtbench");
        fs::copy(env!("CARGO_BIN_EXE_virtbench"), &program).unwrap();
        for name in [".", "SLOW", "fence.toml"] {
            nobody(fence.path(name), Some(65534), Some(65534)).unwrap();
        }
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--"]);
        command.arg(program);
    }
    let mut child = command.args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
    wait_for("the socket", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        UnixStream::connect(fence.path("A")).ok().map(drop)
    });
    assert_eq!(fence_load(&fence), 0);
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}
