//! Operations on govmomi's simulator, by virtbench's client and by govmomi's; the client's own share; an inventory's memory.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use virtbench_vsphere::{
    Address, Cluster, LocalVcenter, Operation, OperationTimes, PlaceNames, Reference, Until, Vsphere,
    VsphereError,
};

use crate::footprint;
use crate::pairs::{Verdict, alternated, median};

/// Hosts and VMs of the comparison, and of the inventory.
const SMALL: (&str, &str) = ("10", "300");
const LARGE: (&str, &str) = ("1000", "10000");
/// How long each measurement takes.
const LENGTH: Duration = Duration::from_secs(2);
/// Clients at once.
const CLIENTS: [usize; 3] = [1, 8, 64];
/// Operations, as `virtbench-vsphere bench` names them.
const KINDS: [&str; 3] = ["snapshot", "reconfigure", "relocate"];
const LEAST_ROUNDS: usize = 3;
/// The median share of the client in a latency, in milliseconds, at most.
const MOST_OWN_MS: f64 = 2.0;
/// Memory of a large inventory, in MiB, at most.
const MOST_MEMORY_MIB: f64 = 200.0;

/// What a client did.
struct Driven {
    per_second: f64,
    median_ms: f64,
    /// The client's own share of a latency, the median.
    own_ms: Option<f64>,
}

fn later(length: Duration) -> Instant {
    Instant::now() + length
}

fn connect(vcenter: &LocalVcenter) -> Result<Vsphere> {
    let address = Address::parse(&vcenter.argument())?;
    Ok(Vsphere::connect(&address, vcenter.password(), later(Duration::from_secs(30)))?)
}

/// Alternates the clients, and holds what is promised of the ratios.
pub fn check(rounds: usize, _: &Path) -> Result<Vec<Verdict>> {
    println!(
        "operations on govmomi's simulator with {} VMs, {} s each; the other client is govmomi's",
        SMALL.1,
        LENGTH.as_secs()
    );
    let mut verdicts = Vec::new();
    for kind in KINDS {
        for clients in CLIENTS {
            // A simulator of its own: tasks and events pile up in one.
            let vcenter = LocalVcenter::start(&["--hosts", SMALL.0, "--vms", SMALL.1])?;
            let rounds = rounds.max(LEAST_ROUNDS);
            for (waits, name) in [(Waits::AsGovmomi, ""), (Waits::AsWe, ", polling as we do")] {
                let mut pairs = Vec::new();
                for round in 0..rounds {
                    let ours = || ours(&vcenter, kind, clients);
                    let theirs = || theirs(&vcenter, kind, clients, waits);
                    pairs.push(alternated(round, ours, theirs)?);
                }
                let case = format!("vsphere: {kind}, {clients} clients{name}");
                verdicts.extend(lines(&case, &pairs, waits));
            }
        }
    }
    verdicts.push(memory()?);
    Ok(verdicts)
}

/// How the other client learns that a task is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// By updates alone, as `object.Task.Wait` does.
    AsGovmomi,
    /// It asks a few times at first, as virtbench does: what is left of the ratio is not the polling.
    AsWe,
}

fn lines(case: &str, pairs: &[(Driven, Driven)], waits: Waits) -> Vec<Verdict> {
    let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours.per_second / theirs.per_second).collect();
    let (low, high) =
        ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let of = |of: fn(&(Driven, Driven)) -> f64| median(pairs.iter().map(of).collect());
    let (ours, theirs) = (of(|pair| pair.0.per_second), of(|pair| pair.1.per_second));
    let (our_ms, their_ms) = (of(|pair| pair.0.median_ms), of(|pair| pair.1.median_ms));
    let ratio = median(ratios);
    let kept = ratio >= 1.0;
    let promise = match (waits, kept) {
        (Waits::AsWe, _) => "",
        (Waits::AsGovmomi, true) => ">= 1      kept",
        (Waits::AsGovmomi, false) => ">= 1      BROKEN",
    };
    println!(
        "{:<56} {ours:>10.0} {theirs:>10.0} {ratio:>8.3} {:>15}  {promise}",
        format!("{case}: operations/s"),
        format!("{low:.2} to {high:.2}"),
    );
    println!("{:<56} {our_ms:>10.2} {their_ms:>10.2}", format!("{case}: median ms"));
    if waits == Waits::AsWe {
        return Vec::new();
    }
    let own = median(pairs.iter().filter_map(|(ours, _)| ours.own_ms).collect());
    let own = footprint::line(&format!("{case}: own share of a latency (ms)"), own, MOST_OWN_MS);
    vec![if kept { Verdict::Kept } else { Verdict::Broken }, own]
}

/// Threads on one connection, each with a VM of its own, again and again.
fn ours(vcenter: &LocalVcenter, kind: &str, clients: usize) -> Result<Driven> {
    let server = connect(vcenter)?;
    let (_, cluster) = server.cluster(&PlaceNames::default(), later(LENGTH))?;
    let inventory = server.inventory(later(Duration::from_secs(60)))?;
    let mut machines: Vec<&Reference> = inventory.iter().map(|(machine, _)| machine).collect();
    machines.sort();
    ensure!(machines.len() >= clients, "there are {} VMs only", machines.len());
    let begun = Instant::now();
    let done: Vec<Vec<(Duration, OperationTimes)>> = thread::scope(|scope| {
        let client = |machine| load(&server, kind, machine, &cluster, begun);
        let threads: Vec<_> =
            machines.iter().take(clients).map(|machine| scope.spawn(move || client(machine))).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?);
        joined.collect::<Result<_>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let done: Vec<(Duration, OperationTimes)> = done.into_iter().flatten().collect();
    let milliseconds = |of: fn(&(Duration, OperationTimes)) -> Duration| {
        median(done.iter().map(|one| of(one).as_secs_f64() * 1e3).collect())
    };
    ensure!(!done.is_empty(), "no operation was done");
    Ok(Driven {
        per_second: f64::from(u32::try_from(done.len())?) / seconds,
        median_ms: milliseconds(|one| one.0),
        own_ms: Some(milliseconds(|one| one.1.client)),
    })
}

/// What one client does, as `virtbench-vsphere bench` does it: until the task is over.
fn load(
    server: &Vsphere,
    kind: &str,
    machine: &Reference,
    cluster: &Cluster,
    begun: Instant,
) -> Result<Vec<(Duration, OperationTimes)>> {
    let mut done = Vec::new();
    let mut snapshot = None;
    let mut number = 0;
    while begun.elapsed() < LENGTH {
        let note = number.to_string();
        let operation = match (kind, &snapshot) {
            ("snapshot", None) => Operation::CreateSnapshot { machine, name: "bench" },
            ("snapshot", Some(snapshot)) => Operation::RemoveSnapshot { machine, snapshot },
            ("reconfigure", _) => Operation::Reconfigure { machine, note: &note },
            _ => Operation::Relocate { machine, host: &cluster.hosts[number % cluster.hosts.len()] },
        };
        let at = Instant::now();
        let (course, made) = server.perform(&operation, Until::Done, later(Duration::from_secs(60)));
        done.push((at.elapsed(), course));
        snapshot = made.map_err(|error: VsphereError| anyhow!(error))?;
        number += 1;
    }
    if let Some(snapshot) = &snapshot {
        let operation = Operation::RemoveSnapshot { machine, snapshot };
        server.perform(&operation, Until::Done, later(Duration::from_secs(60))).1?;
    }
    Ok(done)
}

fn theirs(vcenter: &LocalVcenter, kind: &str, clients: usize, waits: Waits) -> Result<Driven> {
    let mut command = Command::new(LocalVcenter::program()?);
    command.args(["bench", "--url", &vcenter.url_with_password(), "--operation", kind]);
    command.args(["--clients", &clients.to_string(), "--time", &format!("{}s", LENGTH.as_secs())]);
    if waits == Waits::AsWe {
        command.arg("--poll");
    }
    let output = command.output()?;
    ensure!(output.status.success(), "govmomi's client: {}", String::from_utf8_lossy(&output.stderr));
    let told: HashMap<String, Value> = serde_json::from_slice(&output.stdout)?;
    let number =
        |name: &str| told.get(name).and_then(Value::as_f64).with_context(|| format!("it tells no {name}"));
    Ok(Driven {
        per_second: number("operations")? / number("seconds")?,
        median_ms: number("median_ms")?,
        own_ms: None,
    })
}

/// What a large inventory adds to this process, read and kept.
fn memory() -> Result<Verdict> {
    let begun = Instant::now();
    let vcenter = LocalVcenter::start(&["--hosts", LARGE.0, "--vms", LARGE.1])?;
    println!("{} hosts and {} VMs were made in {:.0} s", LARGE.0, LARGE.1, begun.elapsed().as_secs_f64());
    let server = connect(&vcenter)?;
    fs::write("/proc/self/clear_refs", "5").context("the peak of the memory cannot be set back")?;
    let before = footprint::resident("VmRSS:")?;
    let begun = Instant::now();
    let inventory = server.inventory(later(Duration::from_secs(300)))?;
    println!("{} VMs were read in {:.1} s", inventory.len(), begun.elapsed().as_secs_f64());
    let most = footprint::resident("VmHWM:")? - before;
    ensure!(inventory.len() == 10_000, "it shows {} VMs", inventory.len());
    Ok(footprint::line("vsphere: memory of 10,000 VMs' inventory (MiB)", most, MOST_MEMORY_MIB))
}
