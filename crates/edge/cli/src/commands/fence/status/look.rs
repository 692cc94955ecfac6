//! One look at a daemon, and what has happened since the look before.

use serde::Serialize;

use super::samples::Samples;

/// A disk as configured.
pub struct Disk {
    pub name: String,
    /// Of the cache, where there is one.
    pub partition: Option<usize>,
}

/// Counts and sums are since the daemon began, or of the last `seconds`.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Since the look before; none at the first.
    pub seconds: Option<f64>,
    pub disks: Vec<DiskStatus>,
}

#[derive(Debug, Serialize)]
pub struct DiskStatus {
    pub disk: String,
    pub reads: f64,
    pub writes: f64,
    pub flushes: f64,
    pub discards: f64,
    pub bytes: f64,
    pub read_ms: Option<f64>,
    pub write_ms: Option<f64>,
    pub errors: f64,
    pub under_way: f64,
    /// Of blocks read from the disk's partition of the cache, or from the one of all.
    pub hit_ratio: Option<f64>,
    /// Whether the cache refuses writes because a device failed.
    pub degraded: Option<bool>,
    pub slots: Option<SlotStatus>,
    pub tokens: Option<TokenStatus>,
    pub paced: Option<PacedStatus>,
    /// Throughput and response over the last minute of work and over all.
    pub steadiness: Vec<SteadinessStatus>,
}

#[derive(Debug, Serialize)]
pub struct SlotStatus {
    pub slots: f64,
    pub used: f64,
    pub credits: f64,
    pub credit_ms: f64,
    pub overruns: f64,
    pub overrun_ms: f64,
    /// What slots to come are owed now; negative what they owe.
    pub balance_ms: f64,
    pub slow: PredictionStatus,
    pub fast: PredictionStatus,
}

#[derive(Debug, Serialize)]
pub struct PredictionStatus {
    pub batches: f64,
    /// How much longer batches took than predicted, on average.
    pub error_ms: Option<f64>,
    /// How far predictions missed, on average.
    pub absolute_error_ms: Option<f64>,
}

/// How much of the capped rates is saved up.
#[derive(Debug, Serialize)]
pub struct TokenStatus {
    pub ios_ms: Option<f64>,
    pub bytes_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct PacedStatus {
    pub ios: f64,
    pub held_ms: f64,
    pub late: f64,
    pub late_ms: f64,
}

/// How much the seconds of a disk differ, as shares of their mean; and how far that is from what the disk has alone.
#[derive(Debug, Serialize)]
pub struct SteadinessStatus {
    pub of: &'static str,
    pub over: &'static str,
    pub intervals: f64,
    pub variation: Option<f64>,
    pub spread: Option<f64>,
    pub deviation: Option<f64>,
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

impl Status {
    /// `before` is another look, so many seconds ago.
    pub fn new(disks: &[Disk], now: &Samples, before: Option<(f64, &Samples)>) -> Self {
        let samples = before.map(|(_, samples)| samples);
        let disks = disks.iter().map(|disk| DiskStatus::new(disk, now, samples)).collect();
        Self { seconds: before.map(|(seconds, _)| seconds), disks }
    }
}

impl DiskStatus {
    fn new(disk: &Disk, now: &Samples, before: Option<&Samples>) -> Self {
        let of = Since { now, before, label: ("disk", &disk.name) };
        let partition = disk.partition.map(|partition| partition.to_string());
        let cache =
            partition.as_ref().map(|partition| Since { now, before, label: ("partition", partition) });
        let requests = |kind| of.count("requests", &[("kind", kind)]);
        let mean_ms = |kind| ratio(of.ms("response_seconds", &[("kind", kind)]), requests(kind));
        let hit_ratio = |cache: &Since<'_>| {
            let [hits, misses] = ["hit", "miss"].map(|state| cache.count("cache_reads", &[("state", state)]));
            ratio(hits, hits + misses)
        };
        Self {
            disk: disk.name.clone(),
            reads: requests("read"),
            writes: requests("write"),
            flushes: requests("flush"),
            discards: requests("discard"),
            bytes: ["read", "write"].map(|kind| of.count("bytes", &[("kind", kind)])).iter().sum(),
            read_ms: mean_ms("read"),
            write_ms: mean_ms("write"),
            errors: of.count("errors", &[]),
            under_way: of.gauge("under_way", &[]).unwrap_or(0.0),
            hit_ratio: cache.as_ref().and_then(hit_ratio),
            degraded: cache.and_then(|cache| Some(cache.gauge("cache_degraded", &[])? > 0.0)),
            slots: slots(&of),
            tokens: tokens(&of),
            paced: paced(&of),
            steadiness: steadiness(&of),
        }
    }
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
        for over in ["minute", "all"] {
            let gauge = |name| of.gauge(name, &[("of", what), ("over", over)]);
            let Some(intervals) = gauge("intervals") else { continue };
            found.push(SteadinessStatus {
                of: what,
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

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
