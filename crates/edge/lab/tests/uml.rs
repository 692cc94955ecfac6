//! Guests of User Mode Linux that really boot, and the ways in which they fail. `scripts/setup-uml.sh` fetches their kernel.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Environment, MachineError, TimeLimits, Uml, UmlConfig, UmlDisk, UmlDiskKind, UmlGuest, UmlImage,
    UmlKernel, measure, usable_processors,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const SIZE_BYTES: u64 = 16 << 20;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn image(modules: &[&str]) -> UmlImage {
    or_mend(UmlImage::new(&or_mend(UmlKernel::find()), modules))
}

fn config() -> UmlConfig {
    UmlConfig::new(usable_processors().unwrap()[0])
}

/// Generous: a host that is busy with other tests.
const SOON: Duration = Duration::from_secs(30);

fn is_gone(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |text| text.contains(") Z"))
}

fn wait_until_gone(processes: &[u32]) {
    let until = Instant::now() + SOON;
    while !processes.iter().all(|process| is_gone(*process)) {
        assert!(Instant::now() < until, "some of {processes:?} live");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The folder that the kernel had while it started: it is gone once the guest answers, so that no kill leaves it.
fn has_folder(guest: &UmlGuest) -> bool {
    let word = guest.command_line().iter().find_map(|word| word.strip_prefix("uml_dir="));
    Path::new(word.unwrap()).exists()
}

#[test]
fn a_guest_boots_answers_by_the_host_s_clock_and_powers_off() {
    let image = image(&[]);
    let mut guest = or_mend(UmlGuest::boot(&image, &config()));
    assert_eq!((guest.greeting().processors, &guest.greeting().kernel), (1, &image.kernel().release));
    let before = guest.connection().synchronise(20).unwrap();
    thread::sleep(Duration::from_secs(1));
    let drift = before.drift_until(&guest.connection().synchronise(20).unwrap()).unwrap();
    assert!(!drift.is_suspect(), "{drift:?}");
    let processes = guest.process_ids();
    assert!(processes.len() >= 2 && !has_folder(&guest), "the kernel and its init: {processes:?}");
    guest.shut_down();
    wait_until_gone(&processes);
}

#[test]
fn a_load_reaches_each_kind_of_disk() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("disk");
    fs::write(&path, vec![0x5a; usize::try_from(SIZE_BYTES).unwrap()]).unwrap();
    let load = LoadSpec {
        outstanding: 4,
        workers: 1,
        ramp_ns: 50_000_000,
        time_ns: 300_000_000,
        interval_ns: 100_000_000,
        seed: 1,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), SIZE_BYTES)
    };
    for (name, kind) in UmlDiskKind::ALL {
        let disks = vec![UmlDisk::new(kind, path.clone())];
        let mut environment =
            Uml::new("uml", image(kind.modules()), "asked for", UmlConfig { disks, ..config() });
        let mut machine = or_mend(environment.start());
        let limits = TimeLimits { prepare: Duration::from_secs(30), grace: Duration::from_secs(30) };
        let (_, measured) = measure(&mut *machine, load.clone(), limits, &AtomicBool::new(false)).unwrap();
        let outcome = measured.outcome;
        // A disk of the host that is busy may answer the first of them only after the measuring time.
        let late = outcome.in_flight_at_end.as_ref().map_or(0, |left| left.completed);
        assert!(outcome.total.operations + late > 0 && outcome.errors == 0, "{name}: {outcome:?}");
        let facts = machine.guest().unwrap();
        assert_eq!((facts.adapter.as_str(), facts.accelerator.name.as_str()), (name, "uml"));
        assert_eq!(
            (machine.notes().len(), machine.servers().len()),
            match kind {
                UmlDiskKind::VirtioBlk => (0, 1),
                UmlDiskKind::Ubd { .. } => (1, 0),
            }
        );
        machine.shut_down();
    }
    let written = fs::read(&path).unwrap();
    assert!(written.iter().any(|byte| *byte != 0x5a), "what a guest writes is in the file");
}

#[test]
fn a_killed_kernel_is_noticed_at_once_and_leaves_nothing() {
    let mut guest = or_mend(UmlGuest::boot(&image(&[]), &config()));
    let processes = guest.process_ids();
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-KILL", &processes[0].to_string()]).status().unwrap().success());
    let error = guest.connection().ping().unwrap_err();
    let error = guest.explain(error);
    // The time limit of a conversation is longer.
    assert!(error.to_string().contains("was killed by signal 9") && begun.elapsed() < SOON, "{error}");
    assert!(matches!(guest.check(), Err(MachineError::Ended { .. })));
    drop(guest);
    wait_until_gone(&processes);
}

#[test]
fn what_cannot_boot_says_why() {
    let boot = |config: UmlConfig| UmlGuest::boot(&image(&[]), &config).unwrap_err().to_string();
    let large = boot(UmlConfig { memory_bytes: 1 << 50, ..config() });
    assert!(
        large.contains("MiB of memory") && large.contains("have fewer guests, or smaller ones"),
        "{large}"
    );
    let small = boot(UmlConfig { memory_bytes: 8 << 20, boot_limit: Duration::from_secs(20), ..config() });
    assert!(small.contains("console"), "{small}");
    let disks = vec![UmlDisk::new(UmlDiskKind::Ubd { synchronous: false }, "/a,b".into())];
    let comma = boot(UmlConfig { disks, ..config() });
    assert!(comma.contains("takes no path with a comma"), "{comma}");
}
