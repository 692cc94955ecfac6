//! Does a guest's disk ever lose an operation? Loads it for a while and says what became of it.
//! `cargo run --release -p virtbench-lab --example endurance DISK [SECONDS] [VCPUS]`

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use virtbench_lab::{
    DEFAULT_ADAPTER, Environment, GuestConfig, GuestDisk, GuestImage, KVM_LIMIT, Qemu, TimeLimits, Vm,
    choose_accelerator, find_kernel, measure,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path =
        PathBuf::from(words.next().ok_or("usage: endurance DISK [SECONDS] [VCPUS]")?).canonicalize()?;
    let seconds: u64 = words.next().map_or(Ok(60), |text| text.parse())?;
    let vcpus: u32 = words.next().map_or(Ok(1), |text| text.parse())?;
    let size_bytes = std::fs::metadata(&path)?.len();
    let (qemu, kernel) = (Qemu::find()?, find_kernel(None)?);
    let choice = choose_accelerator(&qemu, &kernel, KVM_LIMIT)?;
    let image = GuestImage::new(&kernel, &[DEFAULT_ADAPTER])?;
    let config = GuestConfig { vcpus, ..GuestConfig::new(choice.accelerator) };
    let disk = GuestDisk::new(DEFAULT_ADAPTER, path);
    let mut machine = Vm::new("vm", qemu, image, choice.facts(), config, disk).start()?;
    let spec = LoadSpec {
        ramp_ns: 0,
        time_ns: seconds * 1_000_000_000,
        timeout_ns: 10_000_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 50.0)), size_bytes)
    };
    let (_, measured) = measure(machine.as_mut(), spec, TimeLimits::default(), &AtomicBool::new(false))?;
    let outcome = measured.outcome;
    println!(
        "{} operations in {:.1} s, {} failed {:?} {:?}",
        outcome.total.operations,
        outcome.elapsed_ns as f64 / 1e9,
        outcome.errors,
        outcome.error_kinds,
        outcome.notes
    );
    machine.shut_down();
    Ok(())
}
