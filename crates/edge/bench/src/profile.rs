//! `make profile`: where each nanosecond of the loops goes, by `perf`.
//!
//! Shares of the time on a processor (`task-clock`, sampled), turned into nanoseconds an operation
//! with what the load itself says it used. Time that a worker waits is not on a processor and is
//! told beside it. callgrind, which would count instructions instead, cannot run virtbench: it takes
//! away the vDSO that the clock is read through.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{self, Case, Target, json, number, virtbench};

/// Samples a second.
const FREQUENCY_HZ: u32 = 4000;
/// Shares below this are summed up, in percent.
const LEAST_PERCENT: f64 = 1.0;
/// What a profile is ordered by, and how `perf report` calls that.
const ORDERS: [(&str, &str); 3] = [
    ("by program", "dso"),
    ("by function", "dso,symbol"),
    ("by source file, inlined code in its own", "srcfile"),
];

/// Prints the profiles of the null loop and of the file loop.
pub fn write() -> Result<()> {
    let folder = tempfile::TempDir::new_in("target").context("run this from the repository")?;
    let file = folder.path().join("bench.img");
    tools::make_file(&file)?;
    println!("{}", tools::machine()?);
    println!("perf record -e task-clock -F {FREQUENCY_HZ}, one worker; ns = CPU time an operation");
    let data = folder.path().join("perf.data");
    for outstanding in [1, 32] {
        profile(&Case::new(&Target::Null, outstanding), &data)?;
    }
    for outstanding in [1, 32] {
        profile(&Case::new(&Target::File(file.clone()), outstanding), &data)?;
    }
    Ok(())
}

fn profile(case: &Case, data: &Path) -> Result<()> {
    let mut command = Command::new("perf");
    command.args(["record", "--quiet", "--event", "task-clock", "--freq", &FREQUENCY_HZ.to_string()]);
    command.arg("--output").arg(data).arg("--").arg(virtbench());
    command.args(case.arguments()).args(["--ramp", "0s", "--time", "5s"]);
    let load = json(&mut command).context("perf: run `make profile` as root, which installs it")?;
    let operations = number(&load, "/total/operations")?;
    let cpu_ns = (number(&load, "/own_cpu_ns/0")? + number(&load, "/own_cpu_ns/1")?) / operations;
    let wall_ns = 1e9 / number(&load, "/total/iops")?;
    println!("\n== {}: {wall_ns:.1} ns an operation, {cpu_ns:.1} ns of them on a processor", case.name);
    for (title, keys) in ORDERS {
        table(title, &shares(data, keys)?, cpu_ns);
    }
    Ok(())
}

/// One line of a profile.
#[derive(Debug, PartialEq)]
struct Share {
    percent: f64,
    name: String,
}

/// The profile by these keys of `perf report`.
fn shares(data: &Path, keys: &str) -> Result<Vec<Share>> {
    let mut command = Command::new("perf");
    command.args(["report", "--stdio", "--no-children", "--field-separator", "|", "--sort", keys, "--input"]);
    let output = command.arg(data).output().context("cannot start perf")?;
    ensure!(output.status.success(), "perf report: {}", String::from_utf8_lossy(&output.stderr));
    let found = parse(&String::from_utf8_lossy(&output.stdout));
    ensure!(!found.is_empty(), "perf report --sort {keys} has no line");
    Ok(found)
}

/// Reads `overhead|key|key` lines; comments and empty lines are left out.
fn parse(report: &str) -> Vec<Share> {
    let lines = report.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut fields = line.split('|').map(str::trim);
            let percent = fields.next()?.trim_end_matches('%').parse().ok()?;
            // The columns after the keys are of processors that record branches.
            let name = fields.filter(|field| !field.is_empty() && !field.starts_with('-'));
            let name = name.collect::<Vec<_>>().join("  ");
            let name = if name.is_empty() { "(no source known: kernel, vDSO)".to_owned() } else { name };
            Some(Share { percent, name })
        })
        .collect()
}

fn table(title: &str, shares: &[Share], cpu_ns: f64) {
    println!("\n{:>8} {:>6}  {title}", "ns", "%");
    let line =
        |percent: f64, name: &str| println!("{:>8.2} {percent:>6.1}  {name}", cpu_ns * percent / 100.0);
    let (shown, rest): (Vec<&Share>, Vec<&Share>) =
        shares.iter().partition(|share| share.percent >= LEAST_PERCENT);
    shown.iter().for_each(|share| line(share.percent, &share.name));
    let rest_percent = rest.iter().map(|share| share.percent).sum::<f64>();
    if rest_percent > 0.0 {
        line(rest_percent, &format!("({} others)", rest.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_perf_are_read() {
        let report = "# Overhead|Shared Object|Symbol\n#\n\n    17.47%|virtbench  |[.] f<T>::g  |-|-\n 0.02%|[kernel.kallsyms]|[k] x\n";
        let line = |percent, name: &str| Share { percent, name: name.into() };
        assert_eq!(
            parse(report),
            [line(17.47, "virtbench  [.] f<T>::g"), line(0.02, "[kernel.kallsyms]  [k] x")]
        );
        assert!(parse("Error: no samples\n").is_empty());
    }
}
