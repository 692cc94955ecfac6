//! What the fence's daemon costs: its vhost-user-blk beside qemu-storage-daemon's and beside the device itself, one
//! client for all of them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::pairs::{Sample, Verdict, hold_floor, median};
use crate::servers::{Server, fence, storage_daemon};
use crate::tools::{Case, Engine, Target, virtbench};

/// Bytes of each virtual disk, and of every load.
const DISK_BYTES: u64 = 1 << 30;
/// Where the fence puts the first virtual disk.
const OFFSET_BYTES: u64 = 1 << 20;
const MIB: usize = 1 << 20;
/// What pass-through must do on one core, with a device that does nothing.
const LEAST_NULL_IOPS: f64 = 1.5e6;
/// What the way through the daemon may add to one operation, nanoseconds.
const MOST_ADDED_NS: f64 = 5_000.0;

/// Measures everything.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    println!(
        "{:<56} {:>10} {:>10} {:>8}  {:<9}",
        "fence serve, vhost-user", "fence", "other", "ratio", "promise"
    );
    let mut verdicts = Vec::new();
    let at = |name: &str| folder.join(name);

    let served = serve(folder, "null", "null:2 GiB")?;
    let other =
        storage_daemon(&at("qsd-null"), &format!("null-co,node-name=disk,size={DISK_BYTES},read-zeroes=on"))?;
    let (ours, theirs) = (Target::VhostUser(served.1.clone()), Target::VhostUser(at("qsd-null")));
    let pairs = pairs(&ours, &theirs, 32, rounds)?;
    verdicts.push(iops("null, depth 32, beside qemu-storage-daemon", &pairs, 1.5));
    let samples: Vec<Sample> = pairs.iter().map(|pair| pair.0).collect();
    verdicts.push(hold_floor("null, depth 32", &samples, LEAST_NULL_IOPS));
    drop((served, other));

    let file = at("device");
    make_device(&file)?;
    let served = serve(folder, "file", &format!("file:{}", file.display()))?;
    fill(&file)?;
    let other = storage_daemon(&at("qsd-file"), &node(&file, "on"))?;
    let ours = Target::VhostUser(served.1.clone());
    let (raw, qemu) = (Target::File(file), Target::VhostUser(at("qsd-file")));
    let deep = self::pairs(&ours, &raw, 32, rounds)?;
    verdicts.push(iops("file, depth 32, beside raw io_uring", &deep, 0.9));
    let deep = self::pairs(&ours, &qemu, 32, rounds)?;
    verdicts.push(iops("file, depth 32, beside qemu-storage-daemon", &deep, 1.2));
    let single = self::pairs(&ours, &raw, 1, rounds)?;
    verdicts.push(added("file, depth 1, beside raw io_uring", &single));
    drop((served, other));

    // Where the disk is the limit, no server can be much faster than another. In the page cache it is none.
    let file = at("device");
    let served = serve(folder, "cached", &format!("buffered:{}", file.display()))?;
    let other = storage_daemon(&at("qsd-cached"), &node(&file, "off"))?;
    let (ours, qemu) = (Target::VhostUser(served.1.clone()), Target::VhostUser(at("qsd-cached")));
    let cached = self::pairs(&ours, &qemu, 32, rounds)?;
    verdicts.push(iops("file in the page cache, depth 32, beside qemu-storage-daemon", &cached, 1.2));
    drop((served, other));
    Ok(verdicts)
}

/// QEMU's block node over the virtual disk's place in a file, past the page cache or through it.
fn node(file: &Path, direct: &str) -> String {
    format!(
        "driver=raw,node-name=disk,offset={OFFSET_BYTES},size={DISK_BYTES},file.driver=file,file.aio=io_uring,\
        file.cache.direct={direct},cache.direct={direct},file.filename={}",
        file.display()
    )
}

fn pairs(ours: &Target, theirs: &Target, outstanding: u32, rounds: usize) -> Result<Vec<(Sample, Sample)>> {
    let (ours, theirs) = (Case::new(ours, outstanding), Case::new(theirs, outstanding));
    let pair = |round: usize| {
        // Who goes first alternates.
        if round.is_multiple_of(2) {
            Ok((ours.measure(Engine::Virtbench)?, theirs.measure(Engine::Virtbench)?))
        } else {
            let theirs = theirs.measure(Engine::Virtbench)?;
            Ok((ours.measure(Engine::Virtbench)?, theirs))
        }
    };
    (0..rounds).map(pair).collect()
}

fn iops(case: &str, pairs: &[(Sample, Sample)], least: f64) -> Verdict {
    let of = |pick: fn(&(Sample, Sample)) -> f64| median(pairs.iter().map(pick).collect());
    let ratio = of(|(ours, theirs)| ours.iops / theirs.iops);
    let (ours, theirs) = (of(|pair| pair.0.iops), of(|pair| pair.1.iops));
    let promise = format!(">= {least}");
    judge(&format!("{case}: kIOPS"), [ours / 1e3, theirs / 1e3, ratio], &promise, ratio >= least)
}

/// The difference of mean latencies.
fn added(case: &str, pairs: &[(Sample, Sample)]) -> Verdict {
    let of = |pick: fn(&(Sample, Sample)) -> f64| median(pairs.iter().map(pick).collect());
    let added_ns = of(|(ours, theirs)| ours.mean_latency_ns - theirs.mean_latency_ns);
    let (ours, theirs) = (of(|pair| pair.0.mean_latency_ns), of(|pair| pair.1.mean_latency_ns));
    let figures = [ours / 1e3, theirs / 1e3, added_ns / 1e3];
    judge(&format!("{case}: mean us, and the difference"), figures, "<= 5 us", added_ns <= MOST_ADDED_NS)
}

fn judge(line: &str, [ours, theirs, ratio]: [f64; 3], promise: &str, kept: bool) -> Verdict {
    let verdict = if kept { "kept" } else { "BROKEN" };
    println!("{line:<56} {ours:>10.2} {theirs:>10.2} {ratio:>8.3}  {promise:<9} {verdict}");
    if kept { Verdict::Kept } else { Verdict::Broken }
}

/// A daemon that serves one disk of a device, and its socket.
fn serve(folder: &Path, name: &str, device: &str) -> Result<(Server, PathBuf)> {
    let (config, socket) = (folder.join(format!("{name}.toml")), folder.join(format!("fence-{name}")));
    let mut text = String::new();
    write!(
        text,
        "[slow]\ndevice = '{device}'\n[scheduler]\nname = 'pass-through'\n[limits]\nspin_us = 1000\n\
         [[disk]]\nname = 'bench'\nsize = {DISK_BYTES}\nsocket = '{}'\nqueues = 1\n",
        socket.display()
    )?;
    fs::write(&config, text)?;
    let format = Command::new(virtbench()).args(["fence", "format", "--force"]).arg(&config).status()?;
    ensure!(format.success(), "fence format failed");
    Ok((fence(&config, &socket)?, socket))
}

fn make_device(path: &Path) -> Result<()> {
    File::create(path)?.set_len(OFFSET_BYTES + DISK_BYTES + OFFSET_BYTES).context("the device's file")
}

/// Writes the virtual disk, so that no read finds a hole.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::options().write(true).open(path)?;
    for place in 1..=DISK_BYTES / MIB as u64 {
        let piece: Vec<u8> =
            (0..MIB / 8).flat_map(|word| (word as u64 ^ place << 40).to_le_bytes()).collect();
        file.write_all_at(&piece, place * MIB as u64)?;
    }
    file.flush()?;
    file.sync_all().context("the device's file")
}
