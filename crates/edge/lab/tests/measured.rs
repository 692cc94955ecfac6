//! Real loads, natively and in a guest, measured together.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Accelerator, Assignment, DEFAULT_ADAPTER, Environment, GuestConfig, GuestDisk, GuestImage, LabError,
    Machine, Native, Qemu, TimeLimits, Vm, find_kernel, measure, measure_together,
};
use virtbench_record::{AcceleratorFacts, JobOutcome};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const SIZE_BYTES: u64 = 16 << 20;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn load(time_ms: u64) -> LoadSpec {
    LoadSpec {
        outstanding: 4,
        workers: 1,
        ramp_ns: 100_000_000,
        time_ns: time_ms * 1_000_000,
        interval_ns: 100_000_000,
        seed: 1,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), SIZE_BYTES)
    }
}

/// A native machine and a guest, each with a file of its own in `directory`.
fn machines(directory: &Path) -> [Box<dyn Machine>; 2] {
    let file = |name: &str| {
        let path = directory.join(name);
        std::fs::write(&path, vec![0x5a; usize::try_from(SIZE_BYTES).unwrap()]).unwrap();
        path
    };
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[DEFAULT_ADAPTER]));
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let disk = GuestDisk::new(DEFAULT_ADAPTER, file("vm"));
    let config = GuestConfig::new(Accelerator::Tcg);
    let mut vm = Vm::new("vm", or_mend(Qemu::find()), image, facts, config, disk);
    [or_mend(Native::new("native", file("native")).start()), or_mend(vm.start())]
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Waits until a process has read more than it does before a load.
fn wait_until_it_reads(process: u32) {
    let read = || {
        let text = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
        let counted = text.lines().filter_map(|line| {
            let (name, count) = line.split_once(": ")?;
            ["rchar", "read_bytes"].contains(&name).then(|| count.parse::<u64>().ok())?
        });
        counted.sum::<u64>()
    };
    let (before, begun) = (read(), Instant::now());
    while read() < before + (1 << 18) && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn native_and_guest_are_measured_at_one_moment() {
    let directory = directory();
    let mut machines = machines(directory.path());
    let assignments = machines
        .iter_mut()
        .map(|machine| Assignment { machine: &mut **machine, spec: load(1000).into() })
        .collect();
    let together =
        or_mend(measure_together(assignments, &[], TimeLimits::default(), &AtomicBool::new(false)));
    let [native, vm] = together.results.try_into().unwrap();
    let [native, vm] = [native, vm].map(|result| or_mend(result).filter_map(JobOutcome::load).unwrap());
    for measured in [&native, &vm] {
        assert!(measured.outcome.total.operations > 0 && measured.outcome.errors == 0);
        assert!(measured.outcome.target.direct && measured.host.cpu_percent > 0.0);
    }
    assert_eq!(native.host_elapsed_ns, native.outcome.elapsed_ns);
    assert!(native.clock.is_none() && !vm.clock.unwrap().is_suspect());
    machines.into_iter().for_each(Machine::shut_down);
}

#[test]
fn a_qemu_killed_under_load_fails_alone_and_fast() {
    let directory = directory();
    let mut machines = machines(directory.path());
    let process = machines[1].processes()[0];
    thread::spawn(move || {
        wait_until_it_reads(process);
        std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
    });
    let assignments = machines
        .iter_mut()
        .map(|machine| Assignment { machine: &mut **machine, spec: load(5000).into() })
        .collect();
    let together =
        or_mend(measure_together(assignments, &[], TimeLimits::default(), &AtomicBool::new(false)));
    assert!(together.results[0].is_ok());
    let error = together.results[1].as_ref().unwrap_err();
    assert!(matches!(error, LabError::Machine { machine, .. } if machine == "vm"));
    assert!(error.to_string().contains("killed by signal 9"), "{error}");
}

#[test]
fn a_machine_serves_one_load_after_another() {
    let directory = directory();
    let mut machines = machines(directory.path());
    for _ in 0..3 {
        for machine in &mut machines {
            let never = AtomicBool::new(false);
            let (_, measured) = or_mend(measure(&mut **machine, load(200), TimeLimits::default(), &never));
            // On a busy host a guest may answer the first of them only after the measuring time.
            let late = measured.outcome.in_flight_at_end.as_ref().map_or(0, |left| left.completed);
            assert!(measured.outcome.total.operations + late > 0 && measured.outcome.errors == 0);
        }
    }
}
