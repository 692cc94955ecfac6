//! A guest's file system on a fenced disk whose daemon is killed and started again. Needs QEMU, a guest kernel, e2fsprogs,
//! xfsprogs and libnbd-bin.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::fence::Fence;
use virtbench_lab::{
    Accelerator, Environment, Filesystem, GuestConfig, GuestDisk, GuestImage, Qemu, TimeLimits, Vm,
    find_adapter, find_kernel, make_filesystem, measure,
};
use virtbench_record::AcceleratorFacts;
use virtbench_workload::parse_workload;

const DISK_BYTES: u64 = 320 << 20;
/// The first disk begins behind the label.
const DISK_AT: u64 = 1 << 20;
/// Times that the daemon is killed under the guest.
const KILLS: usize = 3;

/// Slots too short for a guest's patience are not what is tested here.
const CACHED: &str = r#"
[slow]
device = "file:SLOW"
[fast]
device = "file:FAST"
[cache]
free_target = 300
[scheduler]
name = "Hybrid/Partitioned"
[limits]
max_request = "256 KiB"
[nbd]
listen = "unix:NBD"
[[disk]]
name = "a"
size = "320 MiB"
cache = "16 MiB"
socket = "A"
export = "a"
queues = 2
"#;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program of somebody else's; it must succeed.
fn success(program: &str, package: &str, arguments: &[&str]) {
    let paths = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("timeout");
    let output = command.env("PATH", paths).args(["120", program]).args(arguments).output().unwrap();
    assert!(output.status.code() != Some(127), "{program}: install it with `apt-get install {package}`");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

fn survives(filesystem: Filesystem) {
    let fence = Fence::new("");
    let text = CACHED.replace("unix:NBD", &format!("unix:{}", fence.path("NBD").display()));
    fence.configure(&text);
    let slow = fs::OpenOptions::new().write(true).open(fence.path("SLOW")).unwrap();
    slow.set_len(DISK_AT + DISK_BYTES).unwrap();
    assert_eq!(fence.command("format", &[]).code(), 0);
    let image = fence.path("image");
    or_mend(make_filesystem(&image, DISK_BYTES, filesystem));
    let made = fs::read(&image).unwrap();
    slow.write_all_at(&made, DISK_AT).unwrap();
    drop(made);

    let mut daemon = fence.serve();
    let adapter = find_adapter("vhost-user-blk").unwrap();
    let image = or_mend(GuestImage::with_filesystems(&or_mend(find_kernel(None)), &[adapter], &[filesystem]));
    let disk = GuestDisk { server: Some(fence.path("A")), ..GuestDisk::new(adapter, fence.path("none")) };
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let config = GuestConfig { boot_limit: Duration::from_secs(180), ..GuestConfig::new(Accelerator::Tcg) };
    let mut vm = Vm::new("fence", or_mend(Qemu::find()), image, facts, config, disk);
    let mut machine = or_mend(vm.start());
    let spec = parse_workload("fileserver:threads=2,files=60,run=8s,runs=1").unwrap();
    let limits = TimeLimits { prepare: Duration::from_secs(180), grace: Duration::from_secs(180) };
    let done = AtomicBool::new(false);
    let (outcome, killed) = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut kills = 0;
            for _ in 0..KILLS {
                thread::sleep(Duration::from_secs(2));
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let killed = std::mem::replace(&mut daemon, fence.none());
                killed.kill();
                daemon = fence.serve();
                kills += 1;
            }
            kills
        });
        let measured = measure(machine.as_mut(), spec, limits, &AtomicBool::new(false));
        done.store(true, Ordering::Relaxed);
        let kills = killer.join().unwrap();
        (or_mend(measured).1.outcome, kills)
    });
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    assert!(killed > 0, "the guest was done before the daemon was killed once");
    machine.shut_down();

    let back = fence.path("back");
    let uri = format!("nbd+unix:///a?socket={}", fence.path("NBD").display());
    success("nbdcopy", "libnbd-bin", &[&uri, back.to_str().unwrap()]);
    let check: &[&str] = match filesystem {
        Filesystem::Ext4 => &["e2fsck", "-f", "-n"],
        Filesystem::Xfs => &["xfs_repair", "-n", "-f"],
    };
    success(check[0], "e2fsprogs xfsprogs", &[&check[1..], &[back.to_str().unwrap()]].concat());
    assert_eq!(daemon.stop().code(), 0);
    let inspected = fence.command("inspect", &["--data"]);
    assert_eq!(inspected.code(), 0, "{inspected:?}");
}

#[test]
fn ext4_of_a_guest_is_whole_after_its_daemon_was_killed() {
    survives(Filesystem::Ext4);
}

#[test]
fn xfs_of_a_guest_is_whole_after_its_daemon_was_killed() {
    survives(Filesystem::Xfs);
}
