//! The figures as OpenMetrics text (version 1.0.0): seconds and ratios, a family for each quantity, a sample where there is
//! a figure.

use std::fmt::{Display, Write as _};
use std::sync::PoisonError;

use virtbench_fence::{Account, Device, PacedAccount, PredictionErrors, SlotAccount};

use super::intervals::Steadiness;
use super::response_times::QUANTILES;
use super::{CacheMetrics, DiskMetrics, KINDS, Metrics, Stand};

const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];
/// The last minute of work, and everything since the start.
const OVER: [&str; 2] = ["minute", "all"];
const DEVICES: [(Device, &str); 2] = [(Device::Slow, "slow"), (Device::Fast, "fast")];

/// Labels and a value.
type Sample = (String, String);

/// Families, one after the other.
struct Text {
    text: String,
    /// What each sample's labels begin with.
    pool: String,
}

impl Text {
    /// A family without samples is left out.
    fn family(&mut self, name: &str, kind: &str, help: &str, samples: &[Sample]) {
        if samples.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "# TYPE virtbench_fence_{name} {kind}");
        if let Some(unit) = UNITS.iter().find(|unit| name.rsplit('_').next() == Some(**unit)) {
            let _ = writeln!(self.text, "# UNIT virtbench_fence_{name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP virtbench_fence_{name} {help}");
        let pool = &self.pool;
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (labels, value) in samples {
            let _ = writeln!(self.text, "virtbench_fence_{name}{suffix}{{{pool}{labels}}} {value}");
        }
    }

    fn counter(&mut self, name: &str, help: &str, samples: &[Sample]) {
        self.family(name, "counter", help, samples);
    }

    fn gauge(&mut self, name: &str, help: &str, samples: &[Sample]) {
        self.family(name, "gauge", help, samples);
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn signed_seconds(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "-" } else { "" }, seconds(ns.unsigned_abs()))
}

/// Disks with how they stand.
struct Disks<'a>(Vec<(&'a DiskMetrics, Stand)>);

impl Disks<'_> {
    fn by_disk<V: Display>(&self, pick: impl Fn(&DiskMetrics) -> V) -> Vec<Sample> {
        let one =
            |(disk, _): &(&DiskMetrics, Stand)| (format!("disk=\"{}\"", disk.name), pick(disk).to_string());
        self.0.iter().map(one).collect()
    }

    fn by_kind<V: Display>(&self, pick: impl Fn(&DiskMetrics, usize) -> V) -> Vec<Sample> {
        let each = |(disk, _): &(&DiskMetrics, Stand)| {
            let labels = |kind: usize| format!("disk=\"{}\",kind=\"{}\"", disk.name, KINDS[kind]);
            (0..KINDS.len()).map(|kind| (labels(kind), pick(disk, kind).to_string())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(each).collect()
    }

    /// Of those whose scheduler keeps such an account.
    fn by_account<A, V: Display>(
        &self,
        of: impl Fn(&Account) -> Option<A>,
        pick: impl Fn(&A) -> V,
    ) -> Vec<Sample> {
        let one = |(disk, stand): &(&DiskMetrics, Stand)| {
            let account = of(stand.account.as_ref()?)?;
            Some((format!("disk=\"{}\"", disk.name), pick(&account).to_string()))
        };
        self.0.iter().filter_map(one).collect()
    }

    /// Of devices to which batches have been sent.
    fn by_device<V: Display>(&self, pick: impl Fn(&PredictionErrors) -> V) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (disk, stand) in &self.0 {
            let Some(Account::Slots(account)) = &stand.account else { continue };
            for (device, name) in DEVICES {
                let errors = account.prediction(device);
                if errors.batches > 0 {
                    let labels = format!("disk=\"{}\",device=\"{name}\"", disk.name);
                    samples.push((labels, pick(errors).to_string()));
                }
            }
        }
        samples
    }

    fn by_steadiness<V: Display>(&self, pick: impl Fn(&Steadiness) -> Option<V>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (disk, stand) in &self.0 {
            for (windows, over) in stand.so_far.iter().zip(OVER) {
                for (steadiness, of) in windows.iter().zip(["throughput", "response"]) {
                    if let Some(value) = pick(steadiness) {
                        let labels = format!("disk=\"{}\",of=\"{of}\",over=\"{over}\"", disk.name);
                        samples.push((labels, value.to_string()));
                    }
                }
            }
        }
        samples
    }
}

/// Response times that so many of a disk's requests of a kind did not exceed.
fn quantiles(disks: &Disks<'_>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (disk, _) in &disks.0 {
        for (times, kind) in disk.response_times.iter().zip(KINDS) {
            for (found, over) in times.so_far().into_iter().zip(OVER) {
                for (ns, quantile) in found.into_iter().flatten().zip(QUANTILES) {
                    let name = &disk.name;
                    let labels =
                        format!("disk=\"{name}\",kind=\"{kind}\",over=\"{over}\",quantile=\"{quantile}\"");
                    samples.push((labels, format!("{:.9}", ns / 1e9)));
                }
            }
        }
    }
    samples
}

const fn slots(account: &Account) -> Option<SlotAccount> {
    if let Account::Slots(account) = account { Some(*account) } else { None }
}

const fn paced(account: &Account) -> Option<PacedAccount> {
    if let Account::Paced(account) = account { Some(*account) } else { None }
}

fn requests(text: &mut Text, disks: &Disks<'_>) {
    let requests = disks.by_kind(|disk, kind| disk.requests[kind].get());
    text.counter("requests", "Requests answered.", &requests);
    let bytes = disks.by_kind(|disk, kind| disk.bytes[kind].get());
    text.counter("bytes", "Bytes of requests answered well.", &bytes);
    let response = disks.by_kind(|disk, kind| seconds(disk.response_ns[kind].get()));
    text.counter("response_seconds", "Response times, summed.", &response);
    let help = "Response times that this share of the requests did not exceed, to 1.6 %.";
    text.gauge("response_quantile_seconds", help, &quantiles(disks));
    text.counter("errors", "Requests that failed.", &disks.by_disk(|disk| disk.errors.get()));
    let bypassed = disks.by_disk(|disk| disk.bypassed_bytes.get());
    text.counter("bypassed_bytes", "Bytes written past the cache.", &bypassed);
    text.gauge("under_way", "Requests in flight.", &disks.by_disk(|disk| disk.under_way.get()));
}

fn accounts(text: &mut Text, disks: &Disks<'_>) {
    let of_slots = |pick: fn(&SlotAccount) -> String| disks.by_account(slots, pick);
    text.counter("slots", "Time slots that have begun.", &of_slots(|a| a.slots.to_string()));
    let used = of_slots(|a| a.used.to_string());
    text.counter("slots_used", "Time slots in which something was dispatched.", &used);
    let credits = of_slots(|a| a.credit.count.to_string());
    text.counter("slot_credits", "Time slots that ended before their time.", &credits);
    let credit = of_slots(|a| seconds(a.credit.sum_ns));
    text.counter("slot_credit_seconds", "What was left of them, summed.", &credit);
    let overruns = of_slots(|a| a.overrun.count.to_string());
    text.counter("slot_overruns", "Time slots that ended after their time.", &overruns);
    let overrun = of_slots(|a| seconds(a.overrun.sum_ns));
    text.counter("slot_overrun_seconds", "By how much, summed.", &overrun);
    let balance = of_slots(|a| signed_seconds(a.balance_ns));
    text.gauge("slot_balance_seconds", "What slots to come are owed; negative what they owe.", &balance);

    text.counter("batches", "Batches that have completed.", &disks.by_device(|e| e.batches));
    let predicted = disks.by_device(|e| seconds(e.predicted_ns));
    text.counter("batch_predicted_seconds", "Their predicted times, summed.", &predicted);
    text.counter("batch_seconds", "Their times, summed.", &disks.by_device(|e| seconds(e.measured_ns)));
    let errors = disks.by_device(|e| seconds(e.absolute_ns));
    text.counter("batch_error_seconds", "How far predictions missed, summed without signs.", &errors);
    let mean = |ns: Option<f64>| format!("{:.9}", ns.unwrap_or(0.0) / 1e9);
    let signed = disks.by_device(|e| mean(e.mean_ns()));
    text.gauge(
        "prediction_error_seconds",
        "How much longer batches took than predicted, on average.",
        &signed,
    );
    let absolute = disks.by_device(|e| mean(e.mean_absolute_ns()));
    text.gauge("prediction_absolute_error_seconds", "How far predictions missed, on average.", &absolute);

    let mut tokens = Vec::new();
    for (disk, stand) in &disks.0 {
        let Some(Account::Tokens(account)) = stand.account else { continue };
        for (saved, bucket) in [(account.ios_ns, "ios"), (account.bytes_ns, "bytes")] {
            if let Some(ns) = saved {
                tokens.push((format!("disk=\"{}\",bucket=\"{bucket}\"", disk.name), signed_seconds(ns)));
            }
        }
    }
    text.gauge("tokens_seconds", "How much of a capped rate is saved up.", &tokens);

    let of_paced = |pick: fn(&PacedAccount) -> String| disks.by_account(paced, pick);
    text.counter("paced_ios", "Device I/Os that had a due time.", &of_paced(|a| a.ios.to_string()));
    let held = of_paced(|a| seconds(a.held.sum_ns));
    text.counter("held_seconds", "How long answers were held until they were due, summed.", &held);
    text.counter("late_ios", "Those that came late.", &of_paced(|a| a.late.count.to_string()));
    text.counter("late_seconds", "By how much, summed.", &of_paced(|a| seconds(a.late.sum_ns)));
}

fn steadiness(text: &mut Text, disks: &Disks<'_>) {
    let intervals = disks.by_steadiness(|s| (s.intervals > 0).then_some(s.intervals));
    text.gauge("intervals", "Seconds with requests that the next three rest on.", &intervals);
    let six = |value: Option<f64>| value.map(|value| format!("{value:.6}"));
    let variation = disks.by_steadiness(|s| six(s.variation));
    text.gauge("variation_ratio", "Standard deviation of seconds over their mean.", &variation);
    let spread = disks.by_steadiness(|s| six(s.spread));
    text.gauge("spread_ratio", "Greatest second less least, over their mean.", &spread);
    let deviation = disks.by_steadiness(|s| six(s.deviation));
    text.gauge(
        "deviation_ratio",
        "How far the mean is from that alone, where that is configured.",
        &deviation,
    );
}

fn caches(text: &mut Text, caches: &[CacheMetrics]) {
    let by_state = |first: usize, names: &[&str]| {
        let mut samples = Vec::new();
        for (partition, cache) in caches.iter().enumerate() {
            for (at, name) in names.iter().enumerate() {
                let labels = format!("partition=\"{partition}\",state=\"{name}\"");
                samples.push((labels, cache.counts[first + at].get().to_string()));
            }
        }
        samples
    };
    let states = ["all", "free", "used", "writing", "retiring"];
    text.gauge("cache_blocks", "Blocks of 4 KiB by state.", &by_state(0, &states));
    text.gauge("cache_waiting", "Requests that wait for free blocks.", &by_state(5, &["halted"]));
    text.counter("cache_reads", "Blocks read.", &by_state(6, &["hit", "miss"]));
    let rate = |(partition, cache): (usize, &CacheMetrics)| {
        let [hits, misses] = [6, 7].map(|at: usize| cache.counts[at].get() as f64);
        let rate = hits / (hits + misses);
        (hits + misses > 0.0).then(|| (format!("partition=\"{partition}\""), format!("{rate:.6}")))
    };
    let rates: Vec<Sample> = caches.iter().enumerate().filter_map(rate).collect();
    text.gauge("cache_hit_ratio", "Hits among blocks read.", &rates);
    let degraded = by_state(8, &["read_only", "failing", "sealed"]);
    let help =
        "1 where writes are refused, where a device that fails is tried again, where nothing is believed.";
    text.gauge("cache_degraded", help, &degraded);
    text.counter("cache_failures", "Failures of devices that were tried again.", &by_state(11, &["retried"]));
}

impl Metrics {
    /// The figures as OpenMetrics text.
    #[must_use]
    pub fn text(&self) -> String {
        let stand = |disk: &DiskMetrics| *disk.stand.lock().unwrap_or_else(PoisonError::into_inner);
        let disks = Disks(self.disks.iter().map(|disk| (&**disk, stand(disk))).collect());
        let pool = self.pool.as_ref().map_or_else(String::new, |pool| format!("pool=\"{pool}\","));
        let mut text = Text { text: String::new(), pool };
        requests(&mut text, &disks);
        accounts(&mut text, &disks);
        steadiness(&mut text, &disks);
        caches(&mut text, &self.caches);
        text.text.push_str("# EOF\n");
        text.text
    }
}
