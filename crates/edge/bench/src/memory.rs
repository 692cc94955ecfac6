//! Peak resident memory of virtbench.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::{Case, Target};
use crate::virtbench;

/// Operations that each worker keeps under way, and the size of each one's buffer.
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
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start virtbench")?;
    let begun = Instant::now();
    let mut peak_kib = 0.0;
    let status = loop {
        peak_kib = high_water_kib(child.id()).unwrap_or(peak_kib);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("virtbench took more than {limit:?}");
        }
        thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        bail!("virtbench failed: {status}");
    }
    Ok(peak_kib * 1024.0)
}

fn high_water_kib(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}
