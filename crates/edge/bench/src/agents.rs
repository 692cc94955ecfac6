//! A hundred agents from one controller, over ssh on loopback: what each costs, and how far apart they start.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use virtbench_lab::{
    Assignment, DESCRIPTORS_EACH, Environment, LoopbackSshd, Machine, Ssh, SshAddress, TimeLimits,
    measure_together, require_descriptors,
};
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, EngineKind, LoadSpec, Rate};

use crate::footprint::line;
use crate::memory::family;
use crate::pairs::Verdict;

/// How many agents.
const AGENTS: usize = 100;
/// Of each test file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// Pings that tell a clock's offset, as many as before each measurement.
const PINGS: u32 = 25;
/// What the controller itself may take for each agent, in KiB.
const MOST_OWN_KIB: f64 = 512.0;
/// What the controller's ssh of each agent may take, in KiB.
const MOST_CLIENT_KIB: f64 = 4096.0;
/// What an agent may take, its buffers and histograms included, in KiB.
const MOST_AGENT_KIB: f64 = 8192.0;
/// How far apart the first and the last may start, in milliseconds.
const MOST_SPREAD_MS: f64 = 100.0;

/// What the agents took.
#[derive(Debug)]
struct AgentCosts {
    /// Until all had logged in and made their files, in seconds.
    login_s: f64,
    /// Of the controller, each agent's share, in KiB.
    own_kib: f64,
    /// Of one ssh client, the mean, in KiB.
    client_kib: f64,
    /// Of one agent, the mean, in KiB.
    agent_kib: f64,
    /// Of the controller, for each agent.
    descriptors: f64,
    /// From the first agent that began to measure to the last, in milliseconds.
    spread_ms: f64,
}

/// Starts the agents, has all of them apply a light load from one moment on, and says what that took.
pub fn check(folder: &Path) -> Result<Vec<Verdict>> {
    let AgentCosts { login_s, own_kib, client_kib, agent_kib, descriptors, spread_ms } =
        measure(folder, AGENTS)?;
    println!("\n{AGENTS} agents over ssh on loopback, one controller; memory as proportional set size");
    println!("logged in, with a test file of 1 MiB each, after {login_s:.1} s");
    Ok(vec![
        line("controller's own memory an agent (KiB)", own_kib, MOST_OWN_KIB),
        line("memory of an agent's ssh at the controller (KiB)", client_kib, MOST_CLIENT_KIB),
        line("memory of an agent (KiB)", agent_kib, MOST_AGENT_KIB),
        line("file descriptors of the controller an agent", descriptors, DESCRIPTORS_EACH as f64),
        line("from the first agent's start to the last's (ms)", spread_ms, MOST_SPREAD_MS),
    ])
}

/// What `agents` of them take.
fn measure(folder: &Path, agents: usize) -> Result<AgentCosts> {
    require_descriptors(agents)?;
    let server = LoopbackSshd::start(&folder.canonicalize()?, "", "")
        .context("an ssh server: scripts/setup.sh bench installs it")?;
    let own = || Ok::<_, anyhow::Error>((pss_kib(std::process::id())?, open_descriptors()?));
    let before = own()?;
    let begun = Instant::now();
    let mut machines = started(&server, agents)?;
    let login_s = begun.elapsed().as_secs_f64();
    let spread_ms = spread_ms(&mut machines)?;
    let after = own()?;
    let clients = descendants(std::process::id(), |words| words.first().is_some_and(|word| word == "ssh"))?;
    let far = descendants(server.process(), |words| words.get(1).is_some_and(|word| word == "--remote"))?;
    if (clients.len(), far.len()) != (agents, agents) {
        bail!("{agents} agents were started, but {} ssh and {} agents run", clients.len(), far.len());
    }
    let each = |sum: u64| sum as f64 / agents as f64;
    let sum = |processes: &[u32]| processes.iter().map(|process| pss_kib(*process)).sum::<Result<u64>>();
    let figures = AgentCosts {
        login_s,
        own_kib: each(after.0.saturating_sub(before.0)),
        client_kib: each(sum(&clients)?),
        agent_kib: each(sum(&far)?),
        descriptors: each(after.1.saturating_sub(before.1)),
        spread_ms,
    };
    machines.into_iter().for_each(|machine| machine.shut_down());
    for number in 0..agents {
        if !server.is_clean(&folder_of(number)) {
            bail!("agent {number} left something in its folder");
        }
    }
    Ok(figures)
}

fn folder_of(number: usize) -> String {
    format!("far-{number}")
}

/// Machines whose agents are ready; they log in as many at once as the lab lets them.
fn started(server: &LoopbackSshd, agents: usize) -> Result<Vec<Box<dyn Machine>>> {
    let start = |number: usize| -> Result<Box<dyn Machine>> {
        let address = SshAddress::parse(&server.address(&folder_of(number))?)?;
        let mut machine = Ssh::new(&format!("far-{number}"), address, FILE_BYTES).start()?;
        machine.make_target(&mut |_, _| true)?;
        Ok(machine)
    };
    at_once(0..agents, start)
}

/// Does something with all of them at once.
fn at_once<I: Send, T: Send>(
    all: impl IntoIterator<Item = I>,
    act: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let act = &act;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || act(one))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// From the first of the machines that began to measure to the last, in milliseconds. Their clock is this host's, so that what
/// pings make of its offset is an error, by which a machine begins too early or too late.
fn spread_ms(machines: &mut [Box<dyn Machine>]) -> Result<f64> {
    let access = AccessSpec::single(AccessLine::new(4096, 100.0, 100.0));
    let spec = LoadSpec {
        engine: EngineKind::Psync,
        outstanding: 1,
        ramp_ns: 500_000_000,
        time_ns: 500_000_000,
        rate: Some(Rate { per_second: 10.0, arrivals: Arrivals::Constant }),
        ..LoadSpec::new(access, FILE_BYTES)
    };
    let errors = clock_errors_ns(machines)?;
    let assignments = machines
        .iter_mut()
        .map(|machine| Assignment { machine: machine.as_mut(), spec: spec.clone().into() })
        .collect();
    let limits = TimeLimits { prepare: Duration::from_secs(60), grace: Duration::from_secs(60) };
    let together = measure_together(assignments, &[], limits, &AtomicBool::new(false))?;
    for result in &together.results {
        if let Err(error) = result {
            bail!("{error}");
        }
    }
    let late = || together.starts.iter().flatten().zip(&errors).map(|(start, error)| start.late_ns + error);
    let (first, last) = late().min().zip(late().max()).context("no agent began")?;
    Ok((last - first) as f64 / 1e6)
}

/// How far pings, of all machines at once, lead this host astray about each one's clock, in nanoseconds.
fn clock_errors_ns(machines: &mut [Box<dyn Machine>]) -> Result<Vec<i64>> {
    at_once(machines, |machine| Ok(machine.connection().synchronise(PINGS)?.offset_ns))
}

/// Memory of a process in which shared pages count by their share, in KiB (`Pss` of proc(5)).
fn pss_kib(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.with_context(|| format!("{path} says nothing of its memory"))
}

fn open_descriptors() -> Result<u64> {
    Ok(fs::read_dir("/proc/self/fd")?.count() as u64)
}

/// Processes that descend from another and whose command lines are such.
fn descendants(ancestor: u32, is_such: impl Fn(&[String]) -> bool) -> Result<Vec<u32>> {
    let words = |process: &u32| -> Vec<String> {
        let text = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        text.split('\0').map(str::to_owned).collect()
    };
    let family = family(ancestor).context("cannot read /proc")?;
    Ok(family.into_iter().filter(|process| is_such(&words(process))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process in which nothing but this test runs: the controller's memory and descriptors are its process's.
    const ALONE: &str = "VIRTBENCH_BENCH_AGENTS_ALONE";

    #[test]
    fn ten_agents_take_bounded_memory_and_descriptors_and_leave_nothing() {
        if std::env::var_os(ALONE).is_none() {
            let test = "agents::tests::ten_agents_take_bounded_memory_and_descriptors_and_leave_nothing";
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let child = child.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && said.contains("1 passed"), "{child:?}");
            return;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let before = open_descriptors().unwrap();
        let figures = measure(folder.path(), 10).unwrap();
        assert!(figures.descriptors > 0.0 && figures.descriptors <= DESCRIPTORS_EACH as f64, "{figures:?}");
        // A test build and its agents are larger than what `make bench` measures, and the programs that it sends are shared among ten.
        let bounds = [
            (figures.own_kib, 4.0 * MOST_OWN_KIB),
            (figures.client_kib, MOST_CLIENT_KIB),
            (figures.agent_kib, 2.0 * MOST_AGENT_KIB),
        ];
        assert!(bounds.iter().all(|(kib, most)| *kib > 0.0 && kib <= most), "{figures:?}");
        assert!(figures.spread_ms.is_finite());
        // The thread that starts processes and its answers stay.
        assert!(open_descriptors().unwrap() <= before + 4, "descriptors are left");
    }
}
