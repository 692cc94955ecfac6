//! A guest's file system on a fenced disk whose daemon is killed and started again. Needs QEMU, a guest kernel, e2fsprogs,
//! xfsprogs and libnbd-bin.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::fence::Fence;
use virtbench_lab::{
    Accelerator, Environment, Filesystem, GuestConfig, GuestDisk, GuestImage, Machine, Qemu, TimeLimits, Vm,
    find_adapter, find_kernel, make_filesystem, measure,
};
use virtbench_record::AcceleratorFacts;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec, parse_workload};

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

const GUESTS: [&str; 4] = ["A", "b", "c", "d"];

/// A disk for each of four guests. Long streams of the last one's writes go past its cache.
fn four_disks(fence: &Fence) -> String {
    let (head, _) = CACHED.split_once("[nbd]").unwrap();
    let disk = |name: &&str| {
        let socket = fence.path(name).display().to_string();
        let bypass = if *name == GUESTS[3] { "bypass = \"64 KiB\"\n" } else { "" };
        format!(
            "[[disk]]\nname = \"{name}\"\nsize = \"12 MiB\"\ncache = \"6 MiB\"\nsocket = \"{socket}\"\nqueues = 1\n{bypass}"
        )
    };
    format!("{head}{}", GUESTS.iter().map(disk).collect::<String>())
}

/// What a guest does: it holds what it reads against what it wrote. The last one writes in sequence.
fn verified(guest: usize, round: u64) -> LoadSpec {
    let (read, random) = if guest == 3 { (0.0, 0.0) } else { (50.0, 100.0) };
    LoadSpec {
        outstanding: 8,
        ramp_ns: 0,
        time_ns: 20_000_000_000,
        verify: true,
        flush_every: Some(50),
        seed: 100 * round + guest as u64,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, read, random)), 12 << 20)
    }
}

/// Bytes that the last guest's disk had written past its cache since its daemon began.
fn bypassed_bytes(fence: &Fence) -> f64 {
    fence.command("status", &["--json"]).json()["disks"][3]["bypassed_bytes"].as_f64().unwrap()
}

/// Four guests, each on a disk of one fence, whose daemon is killed every minute, or every `VIRTBENCH_FENCE_PAUSE` seconds, for
/// `VIRTBENCH_FENCE_MINUTES`.
#[test]
#[ignore = "half an hour: make soak"]
fn four_guests_find_what_they_wrote_though_their_daemon_is_killed_every_minute() {
    let number =
        |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().expect(name));
    let (minutes, pause) = (number("VIRTBENCH_FENCE_MINUTES", 30), number("VIRTBENCH_FENCE_PAUSE", 60));
    let fence = Fence::new("");
    fence.configure(&four_disks(&fence));
    assert_eq!(fence.command("format", &[]).code(), 0);
    let mut daemon = fence.serve();
    let adapter = find_adapter("vhost-user-blk").unwrap();
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[adapter]));
    let guest = |name: &&str| {
        let disk =
            GuestDisk { server: Some(fence.path(name)), ..GuestDisk::new(adapter, fence.path("none")) };
        let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
        let config =
            GuestConfig { boot_limit: Duration::from_secs(180), ..GuestConfig::new(Accelerator::Tcg) };
        let mut vm = Vm::new(name, or_mend(Qemu::find()), image.clone(), facts, config, disk);
        or_mend(vm.start())
    };
    let machines: Vec<_> = GUESTS.iter().map(guest).collect();
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let one = |(place, mut machine): (usize, Box<dyn Machine>)| {
        let mut operations = 0;
        for round in 0.. {
            let limits = TimeLimits { prepare: Duration::from_secs(180), grace: Duration::from_secs(180) };
            let outcome =
                or_mend(measure(machine.as_mut(), verified(place, round), limits, &AtomicBool::new(false)))
                    .1
                    .outcome;
            let damaged = outcome.verify.as_ref().unwrap().damaged();
            assert!(outcome.errors == 0 && damaged == 0, "guest {place}, round {round}: {outcome:?}");
            operations += outcome.total.operations;
            if Instant::now() > until {
                break;
            }
        }
        machine.shut_down();
        operations
    };
    let (mut kills, mut bypassed) = (0, 0.0);
    let operations: Vec<u64> = thread::scope(|scope| {
        let guests: Vec<_> =
            machines.into_iter().enumerate().map(|guest| scope.spawn(move || one(guest))).collect();
        while !guests.iter().all(|guest| guest.is_finished()) {
            thread::sleep(Duration::from_secs(pause));
            bypassed += bypassed_bytes(&fence);
            std::mem::replace(&mut daemon, fence.none()).kill();
            daemon = fence.serve();
            kills += 1;
        }
        guests.into_iter().map(|guest| guest.join().unwrap()).collect()
    });
    eprintln!(
        "{kills} kills in {minutes} minutes; operations of each guest: {operations:?}; {bypassed} bytes past the cache"
    );
    assert!(bypassed > 0.0, "nothing went past the cache");
    assert_eq!(daemon.stop().code(), 0);
    let inspected = fence.command("inspect", &["--data"]);
    assert_eq!(inspected.code(), 0, "{inspected:?}");
}
