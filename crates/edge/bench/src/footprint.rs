//! Sizes and times of what virtbench carries and starts.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use virtbench_agents::own_agent;
use virtbench_lab::{
    DEFAULT_ADAPTER, Environment, GuestConfig, GuestDisk, GuestImage, KVM_LIMIT, Qemu, TimeLimits, Vm,
    choose_accelerator, find_kernel, measure,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::memory::{memory_a_worker, peak_bytes, peak_bytes_of_all};
use crate::pairs::{Verdict, median};
use crate::tools::{Target, virtbench};

/// Guests booted for the median.
const BOOTS: usize = 5;
/// Guests of 256 MiB that are booted at once.
const TOGETHER: usize = 4;
/// How long seven VMs that fill their memory may take.
const SEVEN_LIMIT: Duration = Duration::from_secs(240);
/// How long a grid of a hundred short points may take.
const GRID_LIMIT: Duration = Duration::from_secs(300);
const MIB: f64 = 1024.0 * 1024.0;

/// Checks what was promised of them.
pub fn check(folder: &Path, file: &Target) -> Result<Vec<Verdict>> {
    println!("{:<56} {:>10} {:>10}", "figure", "virtbench", "promise");
    let (qemu, kernel) = (Qemu::find()?, find_kernel(None)?);
    let image = GuestImage::new(&kernel, &[DEFAULT_ADAPTER])?;
    let initramfs_bytes = image.initramfs_bytes;
    let choice = choose_accelerator(&qemu, &kernel, KVM_LIMIT)?;
    let mut disk = GuestDisk::new(DEFAULT_ADAPTER, folder.join("bench.img"));
    disk.shared = true;
    let config = GuestConfig::new(choice.accelerator);
    let mut vm = Vm::new("vm", qemu, image, choice.facts(), config, disk);
    let boots = (0..BOOTS).map(|_| first_operation(&mut vm)).collect::<Result<Vec<f64>>>()?;
    let together = median((0..BOOTS).map(|_| boot_together(&vm)).collect::<Result<Vec<f64>>>()?);
    let boot = format!("boot to first I/O, {}, median of {BOOTS} (s)", choice.facts().name);
    Ok(vec![
        line("the command as installed (MB)", installed_bytes(folder)? / 1e6, 40.0),
        line("agent (MiB)", own_agent()?.len() as f64 / MIB, 4.0),
        line("initramfs (MiB)", initramfs_bytes as f64 / MIB, 16.0),
        line(&boot, median(boots), 6.0),
        line(&format!("{TOGETHER} guests booted at once, {} (s)", choice.facts().name), together, 10.0),
        line("peak memory, 100-point grid (MiB)", grid_memory(folder)? / MIB, 100.0),
        line("memory of seven VMs of 1 GiB, with QEMU's (GiB)", seven_vms(folder)? / 1024.0 / MIB, 24.0),
        line("memory a worker beyond buffers, null (MiB)", memory_a_worker(&Target::Null)? / MIB, 4.0),
        line("memory a worker beyond buffers, file (MiB)", memory_a_worker(file)? / MIB, 4.0),
    ])
}

pub fn line(figure: &str, value: f64, most: f64) -> Verdict {
    let kept = value <= most;
    println!(
        "{figure:<56} {value:>10.2} {:>10} {}",
        format!("<= {most}"),
        if kept { "kept" } else { "BROKEN" }
    );
    if kept { Verdict::Kept } else { Verdict::Broken }
}

/// Size of the command as `make install` leaves it.
fn installed_bytes(folder: &Path) -> Result<f64> {
    let installed = folder.join("installed");
    let done = Command::new("install").arg("--strip").arg(virtbench()).arg(&installed).status()?;
    ensure!(done.success(), "install --strip {}: {done}", virtbench().display());
    Ok(fs::metadata(installed)?.len() as f64)
}

/// How often a guest on a busy host may complete nothing within its 10 ms.
const ATTEMPTS: u32 = 20;

/// Seconds from asking for a guest until a load of 10 ms on its disk has brought results.
fn first_operation(vm: &mut Vm) -> Result<f64> {
    let spec = LoadSpec {
        outstanding: 1,
        ramp_ns: 0,
        time_ns: 10_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20)
    };
    let begun = Instant::now();
    let mut machine = vm.start()?;
    for _ in 0..ATTEMPTS {
        let never = AtomicBool::new(false);
        let (_, measured) = measure(machine.as_mut(), spec.clone(), TimeLimits::default(), &never)?;
        if measured.outcome.total.operations > 0 {
            let seconds = begun.elapsed().as_secs_f64();
            machine.shut_down();
            return Ok(seconds);
        }
    }
    bail!("the guest's disk completed nothing in {ATTEMPTS} loads of 10 ms")
}

/// Seconds until guests that are booted at once have all greeted.
fn boot_together(vm: &Vm) -> Result<f64> {
    let begun = Instant::now();
    let machines = std::thread::scope(|scope| {
        let boots: Vec<_> = (0..TOGETHER)
            .map(|_| {
                let mut vm = vm.clone();
                scope.spawn(move || vm.start())
            })
            .collect();
        boots
            .into_iter()
            .map(|boot| boot.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    machines.into_iter().for_each(|machine| machine.shut_down());
    Ok(seconds)
}

/// Peak resident memory of virtbench itself over [ESX Disk 2003]'s grid, with short points, in bytes.
fn grid_memory(folder: &Path) -> Result<f64> {
    let mut command = Command::new(virtbench());
    command.args(["study", "native-vs-vm", "--grid", "paper", "--size", "64MiB"]);
    command.args(["--ramp", "0s", "--time", "20ms", "--out"]).arg(folder.join("grid"));
    peak_bytes(&mut command, GRID_LIMIT).context("the grid study")
}

/// Peak resident memory of virtbench and seven guests that have written to most of their memory, in bytes.
fn seven_vms(folder: &Path) -> Result<f64> {
    let mut command = Command::new(virtbench());
    command.args(["study", "neighbours", "--vms", "7", "--memory", "1GiB", "--repetitions", "1"]);
    command.args(["--workload", "memory:kernel=100ms,runs=1,ballast=640MiB,array=16MiB", "--out"]);
    peak_bytes_of_all(command.arg(folder.join("seven")), SEVEN_LIMIT).context("seven VMs")
}

/// A line of this process's status, such as `VmRSS:`, in MiB.
///
/// # Errors
/// There is none.
pub fn resident(name: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).context("no account of memory")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no account of memory")?.parse()?;
    Ok(kib / 1024.0)
}
