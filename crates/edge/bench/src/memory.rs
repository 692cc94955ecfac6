//! Peak resident memory of virtbench.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::{Case, Target, virtbench};

/// Operations that each worker keeps in flight, and the size of each one's buffer.
const OUTSTANDING: u32 = 32;
const BLOCK_BYTES: f64 = 4096.0;
/// The two numbers of workers that are compared: what both have in common falls out.
const FEW: u32 = 1;
const MANY: u32 = 9;
/// How long a load of a second may take.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// What each further worker adds to the peak, beyond its buffers, in bytes.
pub fn memory_a_worker(target: &Target) -> Result<f64> {
    let peak = |workers| {
        let mut command = Command::new(virtbench());
        let case = Case::new(target, OUTSTANDING).workers(workers);
        command.args(case.arguments()).args(["--ramp", "0s", "--time", "1s"]);
        peak_bytes(&mut command, LOAD_LIMIT)
    };
    let added = (peak(MANY)? - peak(FEW)?) / f64::from(MANY - FEW);
    Ok(added - f64::from(OUTSTANDING) * BLOCK_BYTES)
}

/// Peak resident memory of a command from its start to its end, in bytes.
pub fn peak_bytes(command: &mut Command, limit: Duration) -> Result<f64> {
    let peak = |pid, peak_kib| high_water_kib(pid).unwrap_or(peak_kib);
    watched(command, limit, Duration::from_millis(5), peak)
}

/// The same of a command and all that it starts, sampled; pages that several of them share count for
/// each.
pub fn peak_bytes_of_all(command: &mut Command, limit: Duration) -> Result<f64> {
    let peak = |pid, peak_kib: f64| peak_kib.max(resident_kib(pid).unwrap_or(0.0));
    watched(command, limit, Duration::from_millis(100), peak)
}

/// Runs a command to its end and has `peak` look at it now and then; bytes of the KiB it came to.
fn watched(
    command: &mut Command,
    limit: Duration,
    interval: Duration,
    peak: impl Fn(u32, f64) -> f64,
) -> Result<f64> {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start virtbench")?;
    let begun = Instant::now();
    let mut peak_kib = 0.0;
    let status = loop {
        peak_kib = peak(child.id(), peak_kib);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("virtbench took more than {limit:?}");
        }
        thread::sleep(interval);
    };
    if !status.success() {
        bail!("virtbench failed: {status}");
    }
    Ok(peak_kib * 1024.0)
}

fn high_water_kib(pid: u32) -> Option<f64> {
    kib(pid, "VmHWM:")
}

fn kib(pid: u32, name: &str) -> Option<f64> {
    field(pid, name)?.strip_suffix(" kB")?.parse().ok()
}

/// What a process's status says under a name.
fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

/// Resident memory of a process and of all that descend from it, in KiB.
fn resident_kib(pid: u32) -> Option<f64> {
    Some(family(pid)?.into_iter().filter_map(|process| kib(process, "VmRSS:")).sum())
}

/// A process and all that descend from it.
pub fn family(pid: u32) -> Option<Vec<u32>> {
    let processes: Vec<(u32, u32)> = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((process, field(process, "PPid:")?.parse().ok()?))
        })
        .collect();
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(processes.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    Some(family)
}
