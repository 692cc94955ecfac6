//! Loads on files in real guests, on file systems that the host has made. They need QEMU, a guest
//! kernel, e2fsprogs and xfsprogs; if one is missing they fail with the command that mends it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_lab::{
    Accelerator, DEFAULT_ADAPTER, Environment, Filesystem, GuestConfig, GuestDisk, GuestImage, KVM_LIMIT,
    Qemu, TimeLimits, Vm, choose_accelerator, find_kernel, make_filesystem, measure,
};
use virtbench_record::WorkloadOutcome;
use virtbench_workload::files::{Action, Draw, FileLoad, FileSpec};
use virtbench_workload::{Workload, WorkloadSpec, parse_workload};

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a workload in a guest on a new file system of so many bytes.
fn run(filesystem: Filesystem, size_bytes: u64, spec: WorkloadSpec) -> WorkloadOutcome {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("disk.img");
    or_mend(make_filesystem(&path, size_bytes, filesystem));
    let (qemu, kernel) = (or_mend(Qemu::find()), or_mend(find_kernel(None)));
    let image = or_mend(GuestImage::with_filesystems(&kernel, &[DEFAULT_ADAPTER], &[filesystem]));
    let choice = or_mend(choose_accelerator(&qemu, &kernel, KVM_LIMIT));
    let disk = GuestDisk::new(DEFAULT_ADAPTER, path);
    let config = GuestConfig { boot_limit: Duration::from_secs(180), ..GuestConfig::new(Accelerator::Tcg) };
    let mut vm = Vm::new("vm", qemu, image, choice.facts(), config, disk);
    let mut machine = or_mend(vm.start());
    let limits = TimeLimits { prepare: Duration::from_secs(180), grace: Duration::from_secs(180) };
    let (_, measured) = or_mend(measure(machine.as_mut(), spec, limits, &AtomicBool::new(false)));
    machine.shut_down();
    measured.outcome
}

#[test]
fn a_guest_runs_the_file_server_on_ext4_and_on_xfs() {
    for filesystem in Filesystem::ALL {
        let spec = parse_workload("fileserver:threads=4,files=100,run=2s,runs=1").unwrap();
        let outcome = run(filesystem, 512 << 20, spec);
        assert_eq!((outcome.runs, outcome.errors), (1, 0), "{outcome:?}");
        assert!(outcome.metric("readwholefile").is_some_and(|metric| metric.mean > 0.0), "{outcome:?}");
        let notes = outcome.notes.join("\n");
        assert!(notes.contains(&format!("on {}", filesystem.name())), "{notes}");
        assert!(notes.contains("page cache dropped"), "{notes}");
    }
}

#[test]
fn a_file_system_that_fills_in_a_guest_keeps_what_was_measured() {
    // A log that only grows.
    let mut spec = parse_workload("webserver:threads=2,files=50,run=10m,runs=2,limit=10m").unwrap();
    let Workload::Files(FileSpec { load: FileLoad::Model(model), .. }) = &mut spec.workload else { panic!() };
    let flow = &mut model.processes[0].threads[0].flow;
    flow.retain(|step| step.action.name() == "appendfilerand");
    let Action::AppendFile { size, .. } = &mut flow[0].action else { panic!() };
    *size = Draw::Fixed(256 << 10);
    let outcome = run(Filesystem::Ext4, 32 << 20, spec);
    let notes = outcome.notes.join("\n");
    assert!(notes.contains("filled up"), "{outcome:?}");
    assert!(outcome.error_kinds.contains_key("StorageFull"), "{:?}", outcome.error_kinds);
    assert!(outcome.metric("operations").is_some_and(|metric| metric.mean > 0.0));
}
