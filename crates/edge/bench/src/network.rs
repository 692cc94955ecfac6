//! The generator of `study network` beside iperf3 and qperf of the distribution: over the loopback and over a pair of virtual Ethernet
//! devices, each with a far end that runs in the same network as ours.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use virtbench_lab::{EndProcessors, NetworkPath, PathGuest, PathKind, Place, Traffic};

use crate::pairs::{Claim, Sample, Verdict};

/// How long each measurement lasts, and how long before that does not count.
const TIME: Duration = Duration::from_secs(2);
const RAMP: Duration = Duration::from_secs(1);
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);
const MTU: u32 = 1500;

/// Holds each kind of traffic against another tool.
pub fn check(rounds: usize, _: &Path) -> Result<Vec<Verdict>> {
    let guest = PathGuest { place: Place::Native, vcpus: 1, memory_bytes: 0 };
    let mut verdicts = Vec::new();
    for (name, kind) in [("loopback", PathKind::Loopback), ("veth pair", PathKind::Pair)] {
        let mut path = NetworkPath::open(kind, MTU, &guest, &EndProcessors::default())?;
        for case in [Case::To, Case::From, Case::Requests] {
            let mut pairs = Vec::new();
            for round in 0..rounds {
                // Which comes first alternates too.
                let (ours, theirs) = if round % 2 == 0 {
                    let ours = case.ours(&mut path)?;
                    (ours, case.theirs(&path)?)
                } else {
                    let theirs = case.theirs(&path)?;
                    (case.ours(&mut path)?, theirs)
                };
                pairs.push((sample(ours), sample(theirs)));
            }
            verdicts.push(case.claim().hold(&format!("network, {name}, {}", case.name()), &pairs));
        }
        path.close();
    }
    Ok(verdicts)
}

fn sample(rate: f64) -> Sample {
    Sample { iops: rate, mean_latency_ns: 1e9 / rate, cpu_per_io_ns: 0.0 }
}

/// What passes, and who else measures it.
#[derive(Clone, Copy)]
enum Case {
    To,
    From,
    Requests,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::To => "TCP to, beside iperf3",
            Self::From => "TCP from, beside iperf3",
            Self::Requests => "requests of a byte, beside qperf",
        }
    }

    fn claim(self) -> Claim {
        match self {
            Self::To | Self::From => Claim::bytes(),
            Self::Requests => Claim::rate(),
        }
    }

    /// Bytes or requests a second.
    fn ours(self, path: &mut NetworkPath) -> Result<f64> {
        let traffic = match self {
            Self::To => Traffic::To { streams: 1 },
            Self::From => Traffic::From { streams: 1 },
            Self::Requests => Traffic::Requests,
        };
        let outcome = path.measure(traffic, RAMP, TIME)?.outcome;
        let moved = if matches!(self, Self::Requests) { outcome.completed } else { outcome.bytes };
        Ok(moved as f64 * 1e9 / outcome.elapsed_ns as f64)
    }

    fn theirs(self, path: &NetworkPath) -> Result<f64> {
        match self {
            Self::To => iperf3(path, &[]),
            Self::From => iperf3(path, &["--reverse"]),
            Self::Requests => qperf(path),
        }
    }
}

/// A command at an end of the path.
fn at(process_id: Option<u32>, words: &[&str]) -> Result<Command> {
    let id = process_id.context("the end is no process of this host")?.to_string();
    let mut command = Command::new("nsenter");
    command.args(["--target", &id, "--net"]).args(words).stdin(Stdio::null());
    Ok(command)
}

/// Ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(path: &NetworkPath, words: &[&str]) -> Result<Server> {
    let mut command = at(path.process_ids().1, words)?;
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Server(child.with_context(|| format!("{}: run `make bench`, which installs it", words[0]))?))
}

/// What a client prints, tried again while its server does not listen yet.
fn ask(path: &NetworkPath, words: &[&str]) -> Result<String> {
    let begun = Instant::now();
    loop {
        let output = at(path.process_ids().0, words)?.output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = [output.stdout, output.stderr].concat();
        ensure!(begun.elapsed() < LIMIT, "{} fails: {}", words.join(" "), String::from_utf8_lossy(&said));
        thread::sleep(Duration::from_millis(100));
    }
}

/// Bytes a second that its receiver got.
fn iperf3(path: &NetworkPath, more: &[&str]) -> Result<f64> {
    let _server = serve(path, &["iperf3", "--server", "--one-off"])?;
    let (address, time, ramp) = (path.address().to_string(), seconds(TIME), seconds(RAMP));
    let words =
        ["iperf3", "--client", &address, "--time", &time, "--omit", &ramp, "--length", "128K", "--json"];
    let printed = ask(path, &[&words[..], more].concat())?;
    let json: serde_json::Value = serde_json::from_str(&printed)?;
    let bits = json["end"]["sum_received"]["bits_per_second"].as_f64();
    Ok(bits.with_context(|| format!("iperf3 gives no rate: {printed}"))? / 8.0)
}

/// Requests a second: it prints how long one way takes.
fn qperf(path: &NetworkPath) -> Result<f64> {
    let _server = serve(path, &["qperf"])?;
    let (address, time) = (path.address().to_string(), seconds(TIME));
    let printed =
        ask(path, &["qperf", "--unify_units", "--msg_size", "1", "--time", &time, &address, "tcp_lat"])?;
    let line = printed.lines().find(|line| line.contains("latency")).context("qperf gives no latency")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., value, unit] = words[..] else { bail!("qperf gives no latency: {line}") };
    let scale = match unit {
        "sec" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        other => bail!("qperf's unit is {other}: {line}"),
    };
    Ok(1.0 / (2.0 * value.parse::<f64>()? * scale))
}

fn seconds(time: Duration) -> String {
    time.as_secs().to_string()
}
