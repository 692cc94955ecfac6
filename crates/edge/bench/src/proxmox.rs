//! Operations on a fake Proxmox VE, by virtbench's client and by proxmoxer; the client's own share; the memory of a long list.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use virtbench_proxmox::{
    Address, Limit, LocalProxmox, Operation, OperationTimes, PASSWORD_VARIABLE, Place, Proxmox, Secret,
};

use crate::footprint;
use crate::pairs::{Verdict, alternated, median};

/// How long each measurement takes.
const LENGTH: Duration = Duration::from_secs(2);
/// Kinds of operations, how many clients do them at once, and whether each task lasts for a fifth of a second.
const CASES: [(&str, usize, bool); 5] = [
    ("snapshot", 1, false),
    ("reconfigure", 1, false),
    ("snapshot", 8, false),
    ("power", 1, true),
    ("power", 8, true),
];
/// Seconds of the fake's own clock that a start and a stop take, and how long such a second is.
const TASK: (f64, f64) = (2.0, 0.1);
const LEAST_ROUNDS: usize = 3;
/// By how much the means of a span that both measure may differ.
const MOST_APART: f64 = 0.05;
/// The median share of the client in a latency, in milliseconds, at most.
const MOST_OWN_MS: f64 = 2.0;
/// VMs of a long list, and the memory that it may take, in MiB.
const LONG: u32 = 10_000;
const MOST_MEMORY_MIB: f64 = 200.0;

/// What a client did.
struct Driven {
    per_second: f64,
    mean_ms: f64,
    own_ms: Option<f64>,
}

fn limit() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(60))
}

fn connect(local: &LocalProxmox) -> Result<Proxmox> {
    let address = Address::parse(&local.argument())?;
    let secret = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE)?;
    Ok(Proxmox::connect(&address, secret, limit())?)
}

/// Alternates the clients, and holds what is promised of the ratios.
pub fn check(rounds: usize, _: &Path) -> Result<Vec<Verdict>> {
    println!("operations on a fake Proxmox VE, {} s each; the other client is proxmoxer", LENGTH.as_secs());
    let mut verdicts = Vec::new();
    for (kind, clients, lasts) in CASES {
        let guests: Vec<Value> = (0..clients).map(|number| guest(100 + number, lasts)).collect();
        let local = LocalProxmox::start(&json!(guests), if lasts { TASK.1 } else { 0.0 })?;
        let mut pairs = Vec::new();
        for round in 0..rounds.max(LEAST_ROUNDS) {
            let ours = || ours(&local, kind, clients);
            let theirs = || theirs(&local, kind, clients);
            pairs.push(alternated(round, ours, theirs)?);
        }
        let long = if lasts { ", tasks of 200 ms" } else { "" };
        verdicts.extend(lines(&format!("proxmox: {kind}, {clients} clients{long}"), &pairs, lasts));
    }
    verdicts.push(memory()?);
    Ok(verdicts)
}

fn guest(vmid: usize, lasts: bool) -> Value {
    let seconds = if lasts { TASK.0 } else { 0.0 };
    json!({"vmid": vmid, "name": format!("vm{vmid}"), "node": "pve1", "start_secs": seconds, "stop_secs": seconds})
}

fn lines(case: &str, pairs: &[(Driven, Driven)], lasts: bool) -> Vec<Verdict> {
    let of = |of: fn(&(Driven, Driven)) -> f64| median(pairs.iter().map(of).collect());
    let rate = of(|(ours, theirs)| ours.per_second / theirs.per_second);
    let mean = of(|(ours, theirs)| ours.mean_ms / theirs.mean_ms);
    let kept = if lasts { (mean - 1.0).abs() <= MOST_APART } else { rate >= 1.0 };
    let promise = if lasts { "means within 5 %" } else { "operations/s >= 1" };
    println!(
        "{:<56} {:>10.1} {:>10.1} {rate:>8.3}",
        format!("{case}: operations/s"),
        of(|pair| pair.0.per_second),
        of(|pair| pair.1.per_second)
    );
    println!(
        "{:<56} {:>10.2} {:>10.2} {mean:>8.3}  {promise} {}",
        format!("{case}: mean ms"),
        of(|pair| pair.0.mean_ms),
        of(|pair| pair.1.mean_ms),
        if kept { "kept" } else { "BROKEN" }
    );
    let own = median(pairs.iter().filter_map(|(ours, _)| ours.own_ms).collect());
    let own = footprint::line(&format!("{case}: own share of a latency (ms)"), own, MOST_OWN_MS);
    vec![if kept { Verdict::Kept } else { Verdict::Broken }, own]
}

/// Threads on one connection, each with a VM of its own, again and again.
fn ours(local: &LocalProxmox, kind: &str, clients: usize) -> Result<Driven> {
    let server = connect(local)?;
    let begun = Instant::now();
    let done: Vec<Vec<OperationTimes>> = thread::scope(|scope| {
        let vms = 100..100 + u32::try_from(clients)?;
        let threads: Vec<_> = vms
            .map(|vmid| {
                scope.spawn({
                    let server = &server;
                    move || load(server, kind, vmid, begun)
                })
            })
            .collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?);
        joined.collect::<Result<_>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let done: Vec<OperationTimes> = done.into_iter().flatten().collect();
    ensure!(!done.is_empty(), "no operation was done");
    let milliseconds = |length: Duration| length.as_secs_f64() * 1e3;
    let count = f64::from(u32::try_from(done.len())?);
    // Until the task is over, as the other client measures it.
    let spans =
        done.iter().map(|times| milliseconds(times.client + times.accepted + times.running + times.done));
    Ok(Driven {
        per_second: count / seconds,
        mean_ms: spans.sum::<f64>() / count,
        own_ms: Some(median(done.iter().map(|times| milliseconds(times.client)).collect())),
    })
}

/// What one client does, as `tests/proxmox/bench.py` does it.
fn load(server: &Proxmox, kind: &str, vmid: u32, begun: Instant) -> Result<Vec<OperationTimes>> {
    let place = Place { node: "pve1".to_owned(), vmid };
    let (mut done, mut number) = (Vec::new(), 0);
    while begun.elapsed() < LENGTH || number % 2 == 1 {
        let note = number.to_string();
        let operation = match (kind, number % 2) {
            ("power", 0) => Operation::Start,
            ("power", _) => Operation::Stop,
            ("snapshot", 0) => Operation::CreateSnapshot { name: "bench" },
            ("snapshot", _) => Operation::DeleteSnapshot { name: "bench" },
            _ => Operation::Describe { description: &note, tags: None },
        };
        let (times, result) = server.perform(&place, &operation, limit());
        result?;
        done.push(times);
        number += 1;
    }
    Ok(done)
}

fn theirs(local: &LocalProxmox, kind: &str, clients: usize) -> Result<Driven> {
    let seconds = LENGTH.as_secs().to_string();
    let output = local
        .proxmoxer()?
        .args(["--kind", kind, "--clients", &clients.to_string(), "--seconds", &seconds])
        .output()?;
    ensure!(output.status.success(), "proxmoxer: {}", String::from_utf8_lossy(&output.stderr));
    let told: HashMap<String, Value> = serde_json::from_slice(&output.stdout)?;
    let number =
        |name: &str| told.get(name).and_then(Value::as_f64).with_context(|| format!("it tells no {name}"));
    Ok(Driven {
        per_second: number("operations")? / number("seconds")?,
        mean_ms: number("mean_ms")?,
        own_ms: None,
    })
}

/// What a long list adds to this process, read and kept.
fn memory() -> Result<Verdict> {
    let guests: Vec<Value> = (0..LONG).map(|number| guest(100 + number as usize, false)).collect();
    let local = LocalProxmox::start(&json!(guests), 0.0)?;
    let server = connect(&local)?;
    fs::write("/proc/self/clear_refs", "5").context("the peak of the memory cannot be set back")?;
    let before = footprint::resident("VmRSS:")?;
    let begun = Instant::now();
    let machines = server.machines(limit())?;
    println!("{} VMs were read in {:.1} s", machines.len(), begun.elapsed().as_secs_f64());
    let most = footprint::resident("VmHWM:")? - before;
    ensure!(machines.len() == LONG as usize, "it shows {} VMs", machines.len());
    Ok(footprint::line("proxmox: memory of 10,000 VMs' list (MiB)", most, MOST_MEMORY_MIB))
}
