//! Memory throughput beside a C program that follows STREAM's rules, `tests/bench/bandwidth.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::pairs::{Verdict, median};
use crate::tools::{json, number, virtbench};

const KERNELS: [&str; 4] = ["copy", "scale", "add", "triad"];
/// Size of each array: four times the last-level cache of the largest machines this runs on.
const ARRAY_BYTES: u64 = 128 << 20;
/// Passes of each kernel; the quickest counts, as in STREAM: what else the machine does only slows.
const PASSES: u32 = 20;
/// How far the median ratio may be from one.
const AGREEMENT: f64 = 0.05;

/// Bytes per second of each kernel.
type Rates = [f64; 4];

/// Measures both in turns, `rounds` times, and judges each kernel's median ratio.
pub fn check(folder: &Path, rounds: usize) -> Result<Vec<Verdict>> {
    let program = compile(folder)?;
    let mut pairs = Vec::new();
    for round in 0..rounds {
        let (ours, theirs);
        if round % 2 == 0 {
            ours = measure_ours()?;
            theirs = measure_theirs(&program)?;
        } else {
            theirs = measure_theirs(&program)?;
            ours = measure_ours()?;
        }
        pairs.push((ours, theirs));
    }
    println!(
        "{:<44} {:>10} {:>10} {:>8} {:>15}  promise",
        "memory, MB/s", "virtbench", "gcc -O3", "ratio", "range"
    );
    Ok(KERNELS.iter().enumerate().map(|(index, kernel)| judge(kernel, index, &pairs)).collect())
}

fn judge(kernel: &str, index: usize, pairs: &[(Rates, Rates)]) -> Verdict {
    let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours[index] / theirs[index]).collect();
    let side =
        |of: fn(&(Rates, Rates)) -> &Rates| median(pairs.iter().map(|pair| of(pair)[index]).collect()) / 1e6;
    let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
    let ratio = median(ratios);
    let kept = (ratio - 1.0).abs() <= AGREEMENT;
    println!(
        "{kernel:<44} {:>10.0} {:>10.0} {ratio:>8.3} {:>15}  {:<9} {}",
        side(|pair| &pair.0),
        side(|pair| &pair.1),
        format!("{low:.2} to {high:.2}"),
        "0.95-1.05",
        if kept { "kept" } else { "BROKEN" }
    );
    if kept { Verdict::Kept } else { Verdict::Broken }
}

/// Without loops turned into library calls and without fused operations: what virtbench spells out.
fn compile(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("bandwidth");
    let output = Command::new("gcc")
        .args(["-O3", "-march=native", "-fopenmp", "-fno-tree-loop-distribute-patterns", "-ffp-contract=off"])
        .arg("-o")
        .arg(&program)
        .arg("tests/bench/bandwidth.c")
        .output()
        .context("gcc: run `make bench`, which installs it")?;
    ensure!(output.status.success(), "bandwidth.c: {}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

fn measure_ours() -> Result<Rates> {
    // A kernel that is to be repeated for a millisecond makes one pass: a sample each.
    let workload = format!("memory:array={ARRAY_BYTES},kernel=1ms,stores=regular,runs={PASSES}");
    let json = json(Command::new(virtbench()).args(["workload", &workload, "--json"]))?;
    let mut rates = [0.0; 4];
    for (index, (rate, kernel)) in rates.iter_mut().zip(KERNELS).enumerate() {
        let name = json.pointer(&format!("/metrics/{index}/name")).and_then(|name| name.as_str());
        ensure!(name == Some(kernel), "virtbench measured {name:?} where {kernel} was expected");
        let passes = (0..PASSES).map(|pass| number(&json, &format!("/metrics/{index}/samples/{pass}")));
        *rate = passes.collect::<Result<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    }
    Ok(rates)
}

fn measure_theirs(program: &Path) -> Result<Rates> {
    let arguments = [(ARRAY_BYTES / 8).to_string(), PASSES.to_string()];
    let output = Command::new(program).args(arguments).output().context("cannot start bandwidth")?;
    ensure!(output.status.success(), "bandwidth: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut rates = [0.0; 4];
    for (rate, kernel) in rates.iter_mut().zip(KERNELS) {
        let line = text.lines().find_map(|line| line.strip_prefix(kernel));
        *rate = line.with_context(|| format!("bandwidth printed no {kernel}"))?.trim().parse()?;
    }
    Ok(rates)
}
