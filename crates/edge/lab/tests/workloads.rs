//! Classic workloads, natively and in a real guest, measured together.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use virtbench_lab::{
    Accelerator, Assignment, DEFAULT_ADAPTER, Environment, GuestConfig, GuestDisk, GuestImage, LabError,
    Machine, Native, Qemu, TimeLimits, Vm, find_kernel, measure, measure_together,
};
use virtbench_record::{AcceleratorFacts, JobOutcome, Measured, WorkloadOutcome};
use virtbench_workload::{AccessLine, AccessSpec, CpuKernel, LoadSpec, WorkloadSpec, parse_workload};

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn guest(directory: &Path) -> Box<dyn Machine> {
    let path = directory.join("disk");
    std::fs::write(&path, vec![0x5a; 8 << 20]).unwrap();
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[DEFAULT_ADAPTER]));
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let disk = GuestDisk::new(DEFAULT_ADAPTER, path);
    let config = GuestConfig { vcpus: 2, ..GuestConfig::new(Accelerator::Tcg) };
    or_mend(Vm::new("vm", or_mend(Qemu::find()), image, facts, config, disk).start())
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn workload(text: &str) -> WorkloadSpec {
    or_mend(parse_workload(text))
}

fn run(machine: &mut dyn Machine, text: &str) -> Measured<WorkloadOutcome> {
    let never = AtomicBool::new(false);
    or_mend(measure(machine, workload(text), TimeLimits::default(), &never)).1
}

#[test]
fn memory_and_computations_run_in_a_guest_with_right_results() {
    let directory = directory();
    let mut vm = guest(directory.path());
    let memory =
        run(&mut *vm, "memory:array=4MiB,kernel=20ms,runs=2,ballast=16MiB,drop-caches,interval=50ms");
    let outcome = &memory.outcome;
    assert_eq!((outcome.threads, outcome.runs, outcome.errors), (2, 2, 0), "{outcome:?}");
    for name in ["copy", "scale", "add", "triad", "copy non-temporal", "triad non-temporal"] {
        assert_eq!(outcome.metric(name).unwrap().samples.len(), 2, "{name}");
    }
    let notes = outcome.notes.join("; ");
    assert!(notes.contains("ballast of 16 MiB, locked") && notes.contains("was emptied"), "{notes}");
    // Whether the clock ran true is for the check to say: on a host that was overloaded when the guest
    // found out its frequency it does not.
    assert!(outcome.steal_ns.is_some() && memory.clock.is_some(), "{memory:?}");

    // The emulated processor must come to the same results as the one on which they were found.
    let cpu = run(&mut *vm, "cpu:kernel=1ms,runs=1,threads=2").outcome;
    assert_eq!((cpu.errors, cpu.interrupted), (0, false), "{:?}", cpu.error_kinds);
    assert_eq!(cpu.metrics[0].name, "score");
    for kernel in CpuKernel::ALL {
        assert!(cpu.metric(kernel.name()).unwrap().mean > 0.0, "{}", kernel.name());
    }
    let error =
        measure(&mut *vm, workload("memory:array=1GiB"), TimeLimits::default(), &AtomicBool::new(false));
    assert!(error.unwrap_err().to_string().contains("array=1 GiB"));
    vm.shut_down();
}

#[test]
fn a_workload_and_a_load_run_at_one_moment() {
    let directory = directory();
    let mut vm = guest(directory.path());
    let mut native = or_mend(Native::new("native", directory.path().to_owned()).start());
    let load = LoadSpec {
        ramp_ns: 100_000_000,
        time_ns: 600_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20)
    };
    let spec = workload("cpu:kernels=sor+sparse,kernel=20ms,time=600ms,ramp=100ms,threads=1,interval=100ms");
    let together = |workload: WorkloadSpec, native: &mut Box<dyn Machine>, vm: &mut Box<dyn Machine>| {
        let assignments = vec![
            Assignment { machine: &mut **native, spec: workload.into() },
            Assignment { machine: &mut **vm, spec: load.clone().into() },
        ];
        measure_together(assignments, &[], TimeLimits::default(), &AtomicBool::new(false))
    };
    let measured = or_mend(together(spec.clone(), &mut native, &mut vm));
    let [native_result, vm_result] = measured.results.try_into().unwrap();
    let cpu = or_mend(native_result).filter_map(JobOutcome::workload).unwrap().outcome;
    let disk = or_mend(vm_result).filter_map(JobOutcome::load).unwrap().outcome;
    assert!(cpu.operations > 0 && cpu.errors == 0 && !cpu.interrupted && cpu.elapsed_ns >= 600_000_000);
    assert!(disk.total.operations > 0 && disk.errors == 0);
    let sum: u64 = cpu.intervals.iter().map(|interval| interval.operations).sum();
    assert_eq!(sum, cpu.operations);

    let other = WorkloadSpec { ramp_ns: 0, ..spec };
    assert!(matches!(together(other, &mut native, &mut vm), Err(LabError::PhasesDiffer)));
    native.shut_down();
    vm.shut_down();
}
