//! How long an appliance takes to be built, and what it takes on disk.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::footprint::line;
use crate::pairs::Verdict;
use crate::tools::virtbench;

const NAME: &str = "postgresql";
const MIB: f64 = 1024.0 * 1024.0;

/// Checks what was promised of the largest one that comes with virtbench and is needed most.
pub fn check(folder: &Path) -> Result<Vec<Verdict>> {
    let cache = folder.join("appliances");
    let (first, fetched_s) = build(&cache)?;
    run(&cache, &["remove", NAME])?;
    let (again, here_s) = build(&cache)?;
    ensure!(first["manifest"]["image_digest"] == again["manifest"]["image_digest"], "two builds differ");
    let disk = first["manifest"]["disk_bytes"].as_f64().context("no size")? / MIB;
    Ok(vec![
        line("PostgreSQL's appliance, packages fetched (s)", fetched_s, 120.0),
        line("PostgreSQL's appliance, packages here (s)", here_s, 120.0),
        line("PostgreSQL's appliance on disk (MiB)", disk, 250.0),
    ])
}

/// Builds it; what it printed, and seconds.
fn build(cache: &Path) -> Result<(Value, f64)> {
    let begun = Instant::now();
    let said = run(cache, &["build", NAME, "--json"])?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok((serde_json::from_slice(&said)?, seconds))
}

fn run(cache: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new(virtbench());
    command.arg("appliance").args(words).env("VIRTBENCH_CACHE", cache).env("XDG_CONFIG_HOME", cache);
    let output = command.output().context("virtbench")?;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}
