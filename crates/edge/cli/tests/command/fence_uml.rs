//! Guests of User Mode Linux on the fence's disks. Needs their kernel: `make uml`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Assignment, Environment, GuestDisk, Machine, TimeLimits, Uml, UmlConfig, UmlDisk, UmlDiskKind, UmlGuest,
    UmlImage, UmlKernel, find_adapter, measure, measure_together, usable_processors,
};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::support::fence::{CACHED, Daemon, Fence};
use crate::support::wait_for;

const DISK_BYTES: u64 = 16 << 20;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn image() -> UmlImage {
    or_mend(UmlImage::new(&or_mend(UmlKernel::find()), UmlDiskKind::VirtioBlk.modules()))
}

fn config(fence: &Fence, socket: &str, number: usize) -> UmlConfig {
    let processors = usable_processors().unwrap();
    let adapter = find_adapter("vhost-user-blk").unwrap();
    let blocks =
        GuestDisk { server: Some(fence.path(socket)), ..GuestDisk::new(adapter, fence.path("none")) };
    let disks = vec![UmlDisk::of(UmlDiskKind::VirtioBlk, blocks)];
    UmlConfig { disks, ..UmlConfig::new(processors[number % processors.len()]) }
}

/// Guests whose disks are those of the fence.
fn guests(fence: &Fence, sockets: &[&str]) -> Vec<Box<dyn Machine>> {
    let image = image();
    let guest = |(number, socket): (usize, &&str)| {
        or_mend(Uml::new(socket, image.clone(), "a test", config(fence, socket, number)).start())
    };
    sockets.iter().enumerate().map(guest).collect()
}

/// Blocks of the fence's devices that were ever written.
fn written(fence: &Fence) -> u64 {
    ["SLOW", "FAST"].map(|device| fs::metadata(fence.path(device)).unwrap().blocks()).iter().sum()
}

fn is_gone(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |text| text.contains(") Z"))
}

/// Random writes and reads, each read held against what was written, and flushes.
fn load(seed: u64, time: Duration) -> LoadSpec {
    LoadSpec {
        outstanding: 8,
        ramp_ns: 0,
        time_ns: u64::try_from(time.as_nanos()).unwrap(),
        verify: true,
        flush_every: Some(50),
        seed,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), DISK_BYTES)
    }
}

fn assert_well(outcome: &LoadOutcome) {
    let damaged = outcome.verify.as_ref().unwrap().damaged();
    assert!(outcome.total.operations > 0 && outcome.errors == 0 && damaged == 0, "{outcome:?}");
}

fn assert_ends_well(fence: &Fence, daemon: Daemon) {
    assert_eq!(daemon.stop().code(), 0);
    let inspected = fence.command("inspect", &["--data"]);
    assert_eq!(inspected.code(), 0, "{inspected:?}");
}

#[test]
fn guests_of_user_mode_linux_find_what_they_wrote_on_partitions_of_one_fence() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let mut machines = guests(&fence, &["A", "B"]);
    for round in 0..2 {
        let mut assignments = Vec::new();
        for (seed, machine) in (2 * round..).zip(&mut machines) {
            let spec = load(seed, Duration::from_secs(3)).into();
            assignments.push(Assignment { machine: machine.as_mut(), spec });
        }
        let never = AtomicBool::new(false);
        let together = or_mend(measure_together(assignments, &[], TimeLimits::default(), &never));
        assert_eq!(together.results.len(), 2);
        for measured in together.results {
            assert_well(&or_mend(measured).outcome.load().unwrap());
        }
    }
    machines.into_iter().for_each(|machine| machine.shut_down());
    assert_ends_well(&fence, daemon);
}

#[test]
fn a_guest_of_user_mode_linux_whose_fence_is_killed_ends_with_it_and_the_next_finds_the_disk() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let mut machine = guests(&fence, &["A"]).remove(0);
    let (processes, before) = (machine.processes(), written(&fence));
    let never = AtomicBool::new(false);
    let begun = Instant::now();
    let long = Duration::from_secs(120);
    let result = thread::scope(|scope| {
        let loaded = scope.spawn(|| measure(machine.as_mut(), load(1, long), TimeLimits::default(), &never));
        wait_for("the load to reach a device", || (written(&fence) > before).then_some(()));
        daemon.kill();
        loaded.join().unwrap()
    });
    let error = result.unwrap_err().to_string();
    assert!(error.contains("ended while it was needed, and the guest with it"), "{error}");
    assert!(begun.elapsed() < long, "what never ends was waited for");
    assert!(machine.check().is_err());
    machine.shut_down();
    wait_for("its processes to end", || processes.iter().all(|process| is_gone(*process)).then_some(()));

    let missing = UmlGuest::boot(&image(), &config(&fence, "A", 0)).unwrap_err().to_string();
    assert!(
        missing.contains("no server of a guest's disk answers") && missing.contains("fence serve"),
        "{missing}"
    );
    let daemon = fence.serve();
    let mut machine = guests(&fence, &["A"]).remove(0);
    let limits = TimeLimits::default();
    assert_well(
        &or_mend(measure(machine.as_mut(), load(2, Duration::from_secs(1)), limits, &never)).1.outcome,
    );
    machine.shut_down();
    assert_ends_well(&fence, daemon);
}
