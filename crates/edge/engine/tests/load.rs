//! Loads on real files of this machine.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use virtbench_engine::{Control, EngineError, Target, TargetError, TargetRequest, monotonic_ns, run};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, EngineKind, LoadSpec};

const SIZE: u64 = 8 << 20;

fn folder() -> TempDir {
    // Beside the build rather than in /tmp, which may be a tmpfs without direct I/O.
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn request(path: &Path) -> TargetRequest {
    TargetRequest {
        path: path.to_owned(),
        size_bytes: Some(SIZE),
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: false,
    }
}

fn spec(read_percent: f64) -> LoadSpec {
    LoadSpec {
        outstanding: 8,
        workers: 2,
        ramp_ns: 20_000_000,
        time_ns: 200_000_000,
        interval_ns: 50_000_000,
        seed: 5,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, read_percent, 100.0)), SIZE)
    }
}

fn open(request: &TargetRequest) -> Result<Target, TargetError> {
    Target::open(request, |_, _| true)
}

fn apply(spec: &LoadSpec, target: &Target) -> LoadOutcome {
    run(spec, target, &Control::new(spec.workers), 0, |_| ()).unwrap()
}

#[test]
fn a_mixed_load_reads_and_writes_a_real_file() {
    let folder = folder();
    let target = open(&request(&folder.path().join("t.img"))).unwrap();
    let outcome = apply(&spec(50.0), &target);
    assert!(outcome.read.operations > 10 && outcome.write.operations > 10, "{outcome:?}");
    assert_eq!(outcome.total.operations, outcome.read.operations + outcome.write.operations);
    assert_eq!(outcome.total.bytes, outcome.total.operations * 4096);
    assert_eq!(outcome.errors, 0);
    assert_eq!(outcome.elapsed_ns, 200_000_000);
    assert_eq!(outcome.intervals.len(), 4);
    assert_eq!(outcome.intervals.iter().map(|i| i.operations).sum::<u64>(), outcome.total.operations);
    assert!(outcome.own_cpu_ns.iter().sum::<u64>() > 0);
    assert!(!outcome.interrupted);
}

#[test]
fn psync_does_the_same_one_at_a_time() {
    let folder = folder();
    let target = open(&request(&folder.path().join("t.img"))).unwrap();
    let load = LoadSpec { engine: EngineKind::Psync, outstanding: 1, ..spec(50.0) };
    let outcome = apply(&load, &target);
    assert!(outcome.read.operations > 0 && outcome.write.operations > 0);
    assert_eq!(outcome.errors, 0);
}

#[test]
fn writes_reach_the_file_and_reads_do_not_change_it() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = open(&request(&path)).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(before.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "a hole was left");
    apply(&spec(100.0), &target);
    assert!(fs::read(&path).unwrap() == before);
    apply(&spec(0.0), &target);
    let after = fs::read(&path).unwrap();
    let changed = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a != b).count();
    assert!(changed > 10, "{changed} blocks changed");
    let distinct: std::collections::BTreeSet<&[u8]> = after.chunks(4096).collect();
    assert_eq!(distinct.len(), after.len() / 4096);
}

#[test]
fn think_time_limits_the_rate() {
    let folder = folder();
    let target = open(&request(&folder.path().join("t.img"))).unwrap();
    let mut load = spec(100.0);
    load.workers = 1;
    load.outstanding = 1;
    load.ramp_ns = 0;
    load.access.lines[0].delay_ns = 10_000_000;
    let outcome = apply(&load, &target);
    // 200 ms hold at most 20 pauses of 10 ms, whatever the disk; and the latency leaves them out.
    assert!((3..=21).contains(&outcome.total.operations), "{}", outcome.total.operations);
    assert!(outcome.total.latency_ns.unwrap().p50 < 10_000_000);
}

#[test]
fn foreign_files_are_never_written() {
    let folder = folder();
    let path = folder.path().join("precious");
    fs::write(&path, vec![7u8; 16384]).unwrap();
    let writing = TargetRequest { size_bytes: None, ..request(&path) };
    assert!(matches!(open(&writing), Err(TargetError::Foreign(_))));
    assert_eq!(fs::read(&path).unwrap(), vec![7u8; 16384]);
    assert!(open(&TargetRequest { writes: false, ..writing.clone() }).is_ok());
    assert!(open(&TargetRequest { allow_overwrite: true, ..writing }).is_ok());
}

#[test]
fn our_own_file_is_used_again_and_grows_on_demand() {
    let folder = folder();
    let path = folder.path().join("t.img");
    open(&request(&path)).unwrap();
    let made = fs::read(&path).unwrap();
    open(&request(&path)).unwrap();
    assert!(fs::read(&path).unwrap() == made, "it was written again");
    let larger = TargetRequest { size_bytes: Some(2 * SIZE), ..request(&path) };
    assert_eq!(open(&larger).unwrap().facts().size_bytes, 2 * SIZE);
}

#[test]
fn impossible_targets_are_named() {
    let folder = folder();
    let message = |request: &TargetRequest| open(request).unwrap_err().to_string();
    assert!(message(&request(folder.path())).contains("directory"));
    assert!(message(&request(Path::new("/dev/null"))).contains("neither"));
    let missing = TargetRequest { size_bytes: None, ..request(&folder.path().join("none")) };
    assert!(message(&missing).contains("--size"));
    let huge = TargetRequest { size_bytes: Some(1 << 60), ..request(&folder.path().join("huge")) };
    assert!(message(&huge).contains("no room"));
    let lost = request(&folder.path().join("no/such/folder/t.img"));
    assert!(message(&lost).contains("cannot create"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
}

#[test]
fn a_mounted_device_is_refused() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut sources = mounts.lines().filter_map(|line| line.split(' ').next());
    let device = sources.find(|source| source.starts_with("/dev/")).map(PathBuf::from);
    let device =
        device.expect("nothing is mounted from a block device here: run the tests where something is");
    let asked = TargetRequest { allow_overwrite: true, size_bytes: None, ..request(&device) };
    assert!(matches!(open(&asked), Err(TargetError::InUse { .. })));
}

#[test]
fn an_interrupted_preparation_leaves_nothing() {
    let folder = folder();
    let asked = request(&folder.path().join("t.img"));
    let result = Target::open(&asked, |written, _| written < SIZE / 2);
    assert!(matches!(result, Err(TargetError::Interrupted(_))));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_target_that_fails_ends_the_load_with_its_errors_counted() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = open(&request(&path)).unwrap();
    // The file shrinks behind the engine's back: every read now comes up short.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    let load = LoadSpec { ramp_ns: 0, time_ns: 20_000_000_000, ..spec(100.0) };
    let began = monotonic_ns();
    let outcome = apply(&load, &target);
    assert!(monotonic_ns() - began < 10_000_000_000, "it did not give up");
    assert!(outcome.errors >= 1000 && outcome.interrupted, "{} errors", outcome.errors);
    assert!(outcome.notes.iter().any(|note| note.contains("gave up")), "{:?}", outcome.notes);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let target = open(&request(Path::new("null"))).unwrap();
    let load = LoadSpec { ramp_ns: 0, time_ns: 60_000_000_000, ..spec(100.0) };
    let control = Control::new(load.workers);
    let outcome = std::thread::scope(|scope| {
        let handle = scope.spawn(|| run(&load, &target, &control, 0, |_| ()).unwrap());
        while control.completed() < 1000 {
            std::thread::yield_now();
        }
        control.stop();
        handle.join().unwrap()
    });
    assert!(outcome.interrupted && outcome.total.operations >= 1000);
    assert!(outcome.elapsed_ns < load.time_ns);
}

#[test]
fn a_load_that_does_not_fit_is_refused() {
    let folder = folder();
    let target = open(&request(&folder.path().join("t.img"))).unwrap();
    let mut odd = spec(100.0);
    odd.access.lines[0].size_bytes = 1000;
    let refused = |load: &LoadSpec| run(load, &target, &Control::new(2), 0, |_| ()).unwrap_err();
    assert!(matches!(refused(&odd), EngineError::Misfit(message) if message.contains("--bs 1000")));
    let large = LoadSpec { region_bytes: 2 * SIZE, ..spec(100.0) };
    assert!(matches!(refused(&large), EngineError::Misfit(_)));
}

#[test]
fn measuring_begins_at_the_agreed_moment_though_threads_wake_late() {
    let folder = folder();
    let target = open(&request(&folder.path().join("t.img"))).unwrap();
    let load = LoadSpec { ramp_ns: 5_000_000, time_ns: 5_000_000, ..spec(100.0) };
    // Enough for the workers to be ready.
    let start_ns = monotonic_ns() + 1_000_000_000;
    let mut told_ns = 0;
    run(&load, &target, &Control::new(load.workers), start_ns, |clock_ns| told_ns = clock_ns).unwrap();
    assert_eq!(told_ns, start_ns + load.ramp_ns);
}
