//! How long the fence's daemon takes to serve again with a large cache: from its start to its socket, metadata read.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::pairs::Verdict;
use crate::tools::virtbench;

const GIB: u64 = 1 << 30;
const CACHE_BYTES: u64 = 64 * GIB;
const PROMISE: Duration = Duration::from_secs(2);
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How long the cache is written to before it is started with what is in it.
const WRITING: &str = "3s";

/// Measures the start with an empty cache, and with what a few seconds of random writes have left, in sparse files.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    println!(
        "{:<56} {:>10} {:>15}  {:<9}",
        "fence serve, start with a cache of 64 GiB", "median s", "range", "promise"
    );
    let (config, socket) = (folder.join("start.toml"), folder.join("start"));
    for (name, bytes) in [("slow", 128 * GIB), ("fast", 72 * GIB)] {
        File::create(folder.join(name))?.set_len(bytes)?;
    }
    let text = format!(
        "[slow]\ndevice = 'file:{}'\n[fast]\ndevice = 'file:{}'\n[scheduler]\nname = 'Hybrid/Partitioned'\n\
         [[disk]]\nname = 'a'\nsize = '100 GiB'\ncache = {CACHE_BYTES}\nsocket = '{}'\nqueues = 1\n",
        folder.join("slow").display(),
        folder.join("fast").display(),
        socket.display()
    );
    fs::write(&config, text)?;
    let format = Command::new(virtbench()).args(["fence", "format"]).arg(&config).status()?;
    ensure!(format.success(), "fence format failed");
    let mut verdicts = vec![judge("nothing in it", &config, &socket, rounds, false)?];
    verdicts.push(judge("after 3 s of random writes and a kill", &config, &socket, rounds, true)?);
    Ok(verdicts)
}

fn judge(case: &str, config: &Path, socket: &Path, rounds: usize, write: bool) -> Result<Verdict> {
    let mut times = Vec::new();
    for round in 0..rounds.max(1) {
        let _ = fs::remove_file(socket);
        let begun = Instant::now();
        let mut daemon =
            Command::new(virtbench()).args(["fence", "serve"]).arg(config).stderr(Stdio::null()).spawn()?;
        while !socket.exists() {
            if begun.elapsed() > LIMIT || daemon.try_wait()?.is_some() {
                let _ = daemon.kill();
                let _ = daemon.wait();
                bail!("fence serve does not start");
            }
            thread::sleep(Duration::from_millis(1));
        }
        // The first start of a cache that is to be written to finds nothing in it yet.
        if !write || round > 0 {
            times.push(begun.elapsed().as_secs_f64());
        }
        if write {
            let target = format!("vhost-user:{}", socket.display());
            let load = Command::new(virtbench())
                .args(["load", "--target", &target, "--read", "0", "--outstanding", "32", "--size", "64GiB"])
                .args(["--time", WRITING, "--flush-every", "1000", "--allow-overwrite"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            ensure!(load.success(), "the load failed");
        }
        daemon.kill()?;
        daemon.wait()?;
    }
    times.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (times.first(), times.last()) else { bail!("more rounds are needed") };
    let median = times[times.len() / 2];
    let kept = median <= PROMISE.as_secs_f64();
    let (verdict, said) = if kept { (Verdict::Kept, "kept") } else { (Verdict::Broken, "BROKEN") };
    let range = format!("{least:.2} to {most:.2}");
    println!("{case:<56} {median:>10.2} {range:>15}  {:<9} {said}", "<= 2 s");
    Ok(verdict)
}
