//! `virtbench fence status`

mod table;

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use virtbench_fence_daemon::config::{Built, Config};
use virtbench_fence_daemon::{control, metrics};
use virtbench_record::{
    DiskStatus, FenceStatus, OfWindow, PacedStatus, PredictionStatus, SlotStatus, SteadinessStatus,
    TokenStatus,
};

use super::pools::{chosen, load, within, worst_of};
use crate::args::fence::StatusArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::tell;

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(1);

/// A fence, and what its daemon said at the last look.
struct Watched<'a> {
    fence: &'a Config,
    disks: Vec<Disk>,
    before: Option<(Instant, Samples)>,
}

/// Prints what running daemons count.
pub fn execute(args: &StatusArgs) -> Outcome {
    let pools = load(&args.config)?;
    let fences = chosen(&pools, &args.only)?;
    if args.raw && fences.len() > 1 {
        return Err(Failure::message(Kind::Usage, format!("--raw is of one pool: {}", pools.which())));
    }
    let watched = |fence| Watched { fence, disks: disks(fence), before: None };
    let mut fences: Vec<Watched<'_>> = fences.into_iter().map(watched).collect();
    let terminal = Term::stdout();
    loop {
        let (shown, silent) = look(&mut fences, args)?;
        if args.watch && !args.raw && !args.json && terminal.is_term() {
            terminal.clear_screen()?;
        }
        let mut out = std::io::stdout().lock();
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        if !args.watch || interrupt::requested() {
            return worst_of(silent).map_or(Ok(()), Err);
        }
        silent.iter().for_each(|failure| tell!("virtbench fence: {}", failure.sentence()));
        thread::sleep(EVERY);
    }
}

/// What is shown of those that answer, and the failures of those that do not, if any answers.
fn look(fences: &mut [Watched<'_>], args: &StatusArgs) -> Result<(String, Vec<Failure>), Failure> {
    let mut status = FenceStatus { seconds: None, disks: Vec::new() };
    let (mut raw, mut silent) = (String::new(), Vec::new());
    let is_first = fences.iter().all(|watched| watched.before.is_none());
    for Watched { fence, disks, before } in &mut *fences {
        let at = Instant::now();
        let text = match fetch(fence) {
            Ok(text) => text,
            Err(failure) => {
                silent.push(within(fence, failure));
                continue;
            }
        };
        let samples = Samples::parse(&text);
        let since = before.as_ref().map(|(then, samples)| (at.duration_since(*then).as_secs_f64(), samples));
        let looked = self::status(disks, fence.pool.as_deref(), &samples, since);
        status.seconds = status.seconds.or(looked.seconds);
        // One that answers for the first time has nothing yet to be subtracted from.
        if is_first || before.is_some() {
            status.disks.extend(looked.disks);
        }
        (*before, raw) = (Some((at, samples)), text);
    }
    if silent.len() == fences.len()
        && let Some(failure) = worst_of(std::mem::take(&mut silent))
    {
        return Err(failure);
    }
    let shown = if args.raw {
        raw
    } else if args.json && args.watch {
        format!("{}\n", virtbench_formats::json::text(&status)?)
    } else if args.json {
        format!("{}\n", virtbench_formats::json::pretty_text(&status)?)
    } else {
        table::text(&status)
    };
    Ok((shown, silent))
}

/// The figures, over HTTP if they are served there, else by the control socket.
fn fetch(config: &Config) -> Result<String, Failure> {
    let silent = |whom: String, why: &dyn std::fmt::Display| {
        Failure::message(
            Kind::Target,
            format!("no fence answers at {whom}: {why}: is `fence serve` running?"),
        )
    };
    if let Some(address) = config.metrics {
        return metrics::fetch(address).map_err(|error| silent(address.to_string(), &error));
    }
    let Some(socket) = config.control_socket() else {
        let why = "no way to ask the daemon: write metrics = \"127.0.0.1:9100\" or control = \"/run/fence.control\"";
        return Err(Failure::message(Kind::Usage, why));
    };
    let whom = socket.display().to_string();
    match control::figures(&socket) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(silent(whom, &"nobody listens")),
        Err(error) => Err(silent(whom, &error)),
    }
}

/// The disks of a configuration, each with its partition of the cache.
fn disks(config: &Config) -> Vec<Disk> {
    let home = config.home().unwrap_or(Built::Slow);
    let partition = |place: usize| match home {
        Built::Cached { shared } => Some(if shared { 0 } else { place }),
        Built::Slow | Built::Fast => None,
    };
    let disk = |(place, disk): (usize, &virtbench_fence_daemon::config::DiskTable)| Disk {
        name: disk.name.clone(),
        partition: partition(place),
    };
    config.disks.iter().enumerate().map(disk).collect()
}

/// A disk as configured.
struct Disk {
    pub name: String,
    /// Of the cache, where there is one.
    pub partition: Option<usize>,
}

/// Families of one disk or partition, now and before.
struct Since<'a> {
    now: &'a Samples,
    before: Option<&'a Samples>,
    label: (&'a str, &'a str),
}

impl Since<'_> {
    fn gauge(&self, name: &str, more: &[(&str, &str)]) -> Option<f64> {
        self.now.get(name, &[&[self.label], more].concat())
    }

    /// A daemon that was started anew counts from nothing.
    fn counter(&self, name: &str, more: &[(&str, &str)]) -> Option<f64> {
        let labels = [&[self.label], more].concat();
        let name = format!("{name}_total");
        let now = self.now.get(&name, &labels)?;
        let before = self.before.and_then(|before| before.get(&name, &labels)).unwrap_or(0.0);
        Some(if before <= now { now - before } else { now })
    }

    fn count(&self, name: &str, more: &[(&str, &str)]) -> f64 {
        self.counter(name, more).unwrap_or(0.0)
    }

    fn ms(&self, name: &str, more: &[(&str, &str)]) -> f64 {
        self.count(name, more) * 1e3
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// `before` is another look, so many seconds ago.
fn status(disks: &[Disk], pool: Option<&str>, now: &Samples, before: Option<(f64, &Samples)>) -> FenceStatus {
    let samples = before.map(|(_, samples)| samples);
    let of_pool = |status: DiskStatus| DiskStatus { pool: pool.map(str::to_owned), ..status };
    let disks = disks.iter().map(|disk| of_pool(disk_status(disk, now, samples))).collect();
    FenceStatus { seconds: before.map(|(seconds, _)| seconds), disks }
}

fn disk_status(disk: &Disk, now: &Samples, before: Option<&Samples>) -> DiskStatus {
    let of = Since { now, before, label: ("disk", &disk.name) };
    let partition = disk.partition.map(|partition| partition.to_string());
    let cache = partition.as_ref().map(|partition| Since { now, before, label: ("partition", partition) });
    let requests = |kind| of.count("requests", &[("kind", kind)]);
    let mean_ms = |kind| ratio(of.ms("response_seconds", &[("kind", kind)]), requests(kind));
    let over = if before.is_some() { OfWindow::Minute } else { OfWindow::All };
    let quantile_ms = |kind, quantile| {
        let labels = [("kind", kind), ("quantile", quantile), ("over", over.name())];
        of.gauge("response_quantile_seconds", &labels).map(|seconds| seconds * 1e3)
    };
    let hit_ratio = |cache: &Since<'_>| {
        let [hits, misses] = ["hit", "miss"].map(|state| cache.count("cache_reads", &[("state", state)]));
        ratio(hits, hits + misses)
    };
    DiskStatus {
        disk: disk.name.clone(),
        pool: None,
        reads: requests("read"),
        writes: requests("write"),
        flushes: requests("flush"),
        discards: requests("discard"),
        bytes: ["read", "write"].map(|kind| of.count("bytes", &[("kind", kind)])).iter().sum(),
        bypassed_bytes: of.count("bypassed_bytes", &[]),
        read_ms: mean_ms("read"),
        write_ms: mean_ms("write"),
        quantiles_over: over,
        read_p50_ms: quantile_ms("read", "0.5"),
        read_p99_ms: quantile_ms("read", "0.99"),
        write_p50_ms: quantile_ms("write", "0.5"),
        write_p99_ms: quantile_ms("write", "0.99"),
        errors: of.count("errors", &[]),
        under_way: of.gauge("under_way", &[]).unwrap_or(0.0),
        hit_ratio: cache.as_ref().and_then(hit_ratio),
        degraded: cache.and_then(|cache| degraded(&cache)),
        slots: slots(&of),
        tokens: tokens(&of),
        paced: paced(&of),
        steadiness: steadiness(&of),
    }
}

/// Whether anything is wrong with a partition of the cache.
fn degraded(cache: &Since<'_>) -> Option<bool> {
    let state = |name| cache.gauge("cache_degraded", &[("state", name)]);
    let all = ["read_only", "failing", "sealed"].map(state);
    all.iter().any(Option::is_some).then(|| all.into_iter().flatten().any(|state| state > 0.0))
}

fn slots(of: &Since<'_>) -> Option<SlotStatus> {
    let prediction = |device| {
        let labels = [("device", device)];
        let batches = of.count("batches", &labels);
        let longer_ms = of.ms("batch_seconds", &labels) - of.ms("batch_predicted_seconds", &labels);
        PredictionStatus {
            batches,
            error_ms: ratio(longer_ms, batches),
            absolute_error_ms: ratio(of.ms("batch_error_seconds", &labels), batches),
        }
    };
    Some(SlotStatus {
        slots: of.counter("slots", &[])?,
        used: of.count("slots_used", &[]),
        credits: of.count("slot_credits", &[]),
        credit_ms: of.ms("slot_credit_seconds", &[]),
        overruns: of.count("slot_overruns", &[]),
        overrun_ms: of.ms("slot_overrun_seconds", &[]),
        balance_ms: of.gauge("slot_balance_seconds", &[])? * 1e3,
        slow: prediction("slow"),
        fast: prediction("fast"),
    })
}

fn tokens(of: &Since<'_>) -> Option<TokenStatus> {
    let [ios_ms, bytes_ms] = ["ios", "bytes"]
        .map(|bucket| of.gauge("tokens_seconds", &[("bucket", bucket)]).map(|seconds| seconds * 1e3));
    ios_ms.or(bytes_ms)?;
    Some(TokenStatus { ios_ms, bytes_ms })
}

fn paced(of: &Since<'_>) -> Option<PacedStatus> {
    Some(PacedStatus {
        ios: of.counter("paced_ios", &[])?,
        held_ms: of.ms("held_seconds", &[]),
        late: of.count("late_ios", &[]),
        late_ms: of.ms("late_seconds", &[]),
    })
}

fn steadiness(of: &Since<'_>) -> Vec<SteadinessStatus> {
    let mut found = Vec::new();
    for what in ["throughput", "response"] {
        for over in [OfWindow::Minute, OfWindow::All] {
            let gauge = |name| of.gauge(name, &[("of", what), ("over", over.name())]);
            let Some(intervals) = gauge("intervals") else { continue };
            found.push(SteadinessStatus {
                of: what.to_owned(),
                over,
                intervals,
                variation: gauge("variation_ratio"),
                spread: gauge("spread_ratio"),
                deviation: gauge("deviation_ratio"),
            });
        }
    }
    found
}

struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// Samples of families that are the fence's.
struct Samples(Vec<Sample>);

impl Samples {
    /// `virtbench_fence_NAME{label="value",...} V`; names of disks have neither commas nor quotes.
    pub fn parse(text: &str) -> Self {
        let one = |line: &str| {
            let (name, rest) = line.strip_prefix("virtbench_fence_")?.split_once('{')?;
            let (labels, value) = rest.split_once("} ")?;
            let label = |label: &str| {
                let (name, value) = label.split_once('=')?;
                Some((name.to_owned(), value.trim_matches('"').to_owned()))
            };
            let labels = labels.split(',').filter_map(label).collect();
            Some(Sample { name: name.to_owned(), labels, value: value.parse().ok()? })
        };
        Self(text.lines().filter_map(one).collect())
    }

    /// The sample of a family that has all these labels.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &&Sample| {
            let own = |key: &str, value: &str| sample.labels.iter().any(|(k, v)| k == key && v == value);
            sample.name == name && labels.iter().all(|(key, value)| own(key, value))
        };
        self.0.iter().find(has).map(|sample| sample.value)
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
