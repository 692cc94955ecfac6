//! fio's JSON output, field by field as fio 3.33 writes it, for fio-plot and other readers.
//!
//! What fio measures and this engine does not (submission latency, context switches, page faults) is
//! there with the value by which fio itself says "no samples": zero, with `N` zero where there is one.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use virtbench_record::{DirectionStats, LoadOutcome};
use virtbench_workload::{EngineKind, LoadSpec};

use super::{ExportError, JobResult, Moment, histogram};

/// fio's default percentiles.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Upper ends of fio's latency buckets, in their units.
const BUCKETS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Writes the results in fio's output format `json`. `version` is virtbench's; readers that
/// look at the version find fio's way of writing one.
///
/// # Errors
/// A stored histogram is damaged.
pub fn fio_json(version: &str, jobs: &[JobResult<'_>]) -> Result<String, ExportError> {
    let ended_ms =
        jobs.iter().map(|job| (job.started_unix_ns + job.outcome.elapsed_ns) / 1_000_000).max().unwrap_or(0);
    let list: Vec<Value> =
        jobs.iter().zip(0u64..).map(|(job, group)| job_json(job, group)).collect::<Result<_, _>>()?;
    let whole = json!({
        "fio version": format!("fio-3.33-virtbench-{version}"),
        "timestamp": ended_ms / 1000,
        "timestamp_ms": ended_ms,
        "time": time_text(ended_ms / 1000),
        "global options": common(jobs),
        "jobs": list,
        "disk_util": [],
    });
    let mut text = crate::json::pretty_text(&whole)?;
    text.push('\n');
    Ok(text)
}

/// Such as `Sat Nov 21 08:41:15 2026`, in UTC.
fn time_text(unix_s: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let Moment { year, month, day, weekday, hour, minute, second } = Moment::from_unix(unix_s);
    let pick = |names: &[&'static str], index: u64| {
        usize::try_from(index).ok().and_then(|i| names.get(i).copied()).unwrap_or("")
    };
    let (weekday, month) = (pick(&DAYS, weekday), pick(&MONTHS, month - 1));
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

fn job_json(job: &JobResult<'_>, group: u64) -> Result<Value, ExportError> {
    let outcome = job.outcome;
    let none = DirectionStats::default();
    let trim = outcome.trim.as_ref().unwrap_or(&none);
    let (reads, writes, trims) = (histogram(&outcome.read)?, histogram(&outcome.write)?, histogram(trim)?);
    let runtime_ms = outcome.elapsed_ns / 1_000_000;
    let cpu = |ns: u64| {
        let available = outcome.elapsed_ns as f64 * f64::from(outcome.spec.workers.max(1));
        if available > 0.0 { ns as f64 / available * 100.0 } else { 0.0 }
    };
    let [user_ns, system_ns] = outcome.own_cpu_ns;
    let mut all = reads.clone();
    // All have the bounds of every recorder, so that the sum cannot fail.
    let _ = all.add(&writes).and_then(|()| all.add(&trims));
    let [latency_ns, latency_us, latency_ms] = latencies(&all);
    let mut sync = Map::new();
    let flush = outcome.flush.as_ref().unwrap_or(&none);
    sync.insert("total_ios".into(), flush.operations.into());
    sync.insert("lat_ns".into(), latency(flush));
    Ok(json!({
        "jobname": job.name,
        "groupid": group,
        "error": if outcome.errors > 0 { 5 } else { 0 },
        "eta": 0,
        "elapsed": outcome.elapsed_ns.div_ceil(1_000_000_000),
        "job options": options(job.name, outcome),
        "read": direction(&outcome.read, &reads, outcome),
        "write": direction(&outcome.write, &writes, outcome),
        "trim": direction(trim, &trims, outcome),
        "sync": sync,
        "job_runtime": runtime_ms,
        "usr_cpu": cpu(user_ns),
        "sys_cpu": cpu(system_ns),
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": depth_level(outcome.spec.outstanding),
        "iodepth_submit": depth_batch(),
        "iodepth_complete": depth_batch(),
        "latency_ns": latency_ns,
        "latency_us": latency_us,
        "latency_ms": latency_ms,
        "latency_depth": outcome.spec.outstanding,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }))
}

/// The options that are the same for all jobs: a reader that joins both finds nothing new.
fn common(jobs: &[JobResult<'_>]) -> Value {
    let mut all = jobs.iter().map(|job| options(job.name, job.outcome));
    let Some(Value::Object(mut common)) = all.next() else { return Value::Object(Map::new()) };
    for other in all {
        common.retain(|key, value| other.get(key.as_str()) == Some(value));
    }
    common.remove("name");
    Value::Object(common)
}

/// The options a fio job would have had. fio-plot finds its files by `rw`, `iodepth`, `numjobs`, `bs`.
fn options(name: &str, outcome: &LoadOutcome) -> Value {
    let spec = &outcome.spec;
    let mut options = Map::new();
    let mut say = |key: &str, value: String| options.insert(key.to_owned(), Value::String(value));
    say("name", name.to_owned());
    say("filename", outcome.target.path.clone());
    say("rw", pattern(spec));
    say("bs", block(spec));
    say("iodepth", spec.outstanding.to_string());
    say("numjobs", spec.workers.to_string());
    say("size", spec.region_bytes.to_string());
    say("runtime", (spec.time_ns / 1_000_000_000).to_string());
    say("ramp_time", (spec.ramp_ns / 1_000_000_000).to_string());
    say("direct", u8::from(outcome.target.direct).to_string());
    say("ioengine", if spec.engine == EngineKind::Psync { "psync" } else { "io_uring" }.to_owned());
    say("randseed", spec.seed.to_string());
    // Clones are one result.
    say("group_reporting", String::new());
    if spec.start_bytes > 0 {
        say("offset", spec.start_bytes.to_string());
    }
    let share: f64 =
        spec.access.lines.iter().map(|line| line.share_percent * line.read_percent / 100.0).sum();
    if spec.access.reads() && spec.access.writes() {
        say("rwmixread", format!("{share:.0}"));
    }
    if let Some(rate) = spec.rate {
        say("rate_iops", format!("{:.0}", rate.per_second / f64::from(spec.workers.max(1))));
    }
    Value::Object(options)
}

/// The `rw` option. A load that seeks at all counts as random.
fn pattern(spec: &LoadSpec) -> String {
    let random = spec.access.lines.iter().any(|line| line.share_percent > 0.0 && line.random_percent > 0.0);
    let trims = spec.access.lines.iter().all(|line| line.trim_percent >= 100.0);
    let kind = match (spec.access.reads(), spec.access.writes()) {
        (true, true) => "rw",
        (true, false) => "read",
        (false, _) if trims => "trim",
        (false, _) => "write",
    };
    format!("{}{kind}", if random { "rand" } else { "" })
}

/// The block size as users write it, such as `4k`; the largest one of a mix.
fn block(spec: &LoadSpec) -> String {
    let bytes = spec.access.longest_bytes();
    if bytes >= 1024 && bytes.is_multiple_of(1024) { format!("{}k", bytes / 1024) } else { bytes.to_string() }
}

fn direction(stats: &DirectionStats, latencies: &Histogram<u64>, outcome: &LoadOutcome) -> Value {
    let samples = Samples::from_stats(stats, outcome);
    let kib = |bytes_per_second: f64| bytes_per_second / 1024.0;
    let latency = latency(stats);
    let mut completion = latency.clone();
    if let (Some(fields), false) = (completion.as_object_mut(), latencies.is_empty()) {
        let at = |percentile: f64| Value::from(latencies.value_at_percentile(percentile));
        let percentiles: Map<String, Value> =
            PERCENTILES.into_iter().map(|percentile| (format!("{percentile:.6}"), at(percentile))).collect();
        fields.insert("percentile".into(), Value::Object(percentiles));
    }
    json!({
        "io_bytes": stats.bytes,
        "io_kbytes": stats.bytes / 1024,
        "bw_bytes": whole(stats.bytes_per_second),
        "bw": whole(kib(stats.bytes_per_second)),
        "iops": stats.iops,
        "runtime": if stats.operations > 0 { outcome.elapsed_ns / 1_000_000 } else { 0 },
        "total_ios": stats.operations,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": no_latency(),
        "clat_ns": completion,
        "lat_ns": latency,
        "bw_min": whole(kib(samples.bytes.min)),
        "bw_max": whole(kib(samples.bytes.max)),
        "bw_agg": if stats.operations > 0 { 100.0 } else { 0.0 },
        "bw_mean": kib(samples.bytes.mean),
        "bw_dev": kib(samples.bytes.deviation),
        "bw_samples": samples.count,
        "iops_min": whole(samples.operations.min),
        "iops_max": whole(samples.operations.max),
        "iops_mean": samples.operations.mean,
        "iops_stddev": samples.operations.deviation,
        "iops_samples": samples.count,
    })
}

fn latency(stats: &DirectionStats) -> Value {
    stats.latency_ns.map_or_else(no_latency, |summary| {
        json!({
            "min": summary.min, "max": summary.max, "mean": summary.mean, "stddev": summary.stddev,
            "N": stats.operations,
        })
    })
}

fn no_latency() -> Value {
    json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0})
}

/// A rate as fio prints it, without decimals.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Least, greatest, mean and deviation of a series.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn from_values(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
        }
    }
}

/// The series of one direction, per second. Intervals are kept for all operations together; of a
/// mixed load each direction has its share of every interval.
struct Samples {
    operations: Spread,
    bytes: Spread,
    count: usize,
}

impl Samples {
    fn from_stats(stats: &DirectionStats, outcome: &LoadOutcome) -> Self {
        let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let per_second = |count: u64, length_ns: u64| count as f64 / (length_ns as f64 / 1e9);
        let operations_share = share(stats.operations, outcome.total.operations);
        // Intervals count what moved: a trim's bytes follow from its operations.
        let is_trim = outcome.trim.as_ref() == Some(stats);
        let mean_bytes = stats.bytes.checked_div(stats.operations).unwrap_or(0) as f64;
        let bytes_share = share(stats.bytes, outcome.total.bytes);
        let intervals = || outcome.intervals.iter().filter(|i| i.length_ns > 0 && stats.operations > 0);
        let operations: Vec<f64> =
            intervals().map(|i| per_second(i.operations, i.length_ns) * operations_share).collect();
        let bytes: Vec<f64> = if is_trim {
            operations.iter().map(|operations| operations * mean_bytes).collect()
        } else {
            intervals().map(|i| per_second(i.bytes, i.length_ns) * bytes_share).collect()
        };
        Self {
            operations: Spread::from_values(&operations),
            bytes: Spread::from_values(&bytes),
            count: operations.len(),
        }
    }
}

/// Percent of all operations in each of fio's buckets: up to 1000 ns, up to 1000 us, and the rest in ms.
fn latencies(all: &Histogram<u64>) -> [Value; 3] {
    let mut counts = [[0u64; 12]; 3];
    for step in all.iter_recorded() {
        let ns = step.value_iterated_to();
        let (unit, value) = match ns {
            0..1_000 => (0, ns),
            1_000..1_000_000 => (1, ns / 1_000),
            _ => (2, ns / 1_000_000),
        };
        let bucket = match BUCKETS.iter().position(|end| value < *end) {
            Some(bucket) => bucket,
            None if value < 2000 => 10,
            None => 11,
        };
        counts[unit][bucket] += step.count_at_value();
    }
    let total = all.len().max(1) as f64;
    let mut unit = 0;
    counts.map(|buckets| {
        let mut names: Vec<String> = BUCKETS.iter().map(ToString::to_string).collect();
        if unit == 2 {
            names.extend(["2000".into(), ">=2000".into()]);
        }
        unit += 1;
        let shares = buckets.iter().map(|count| Value::from(*count as f64 / total * 100.0));
        Value::Object(names.into_iter().zip(shares).collect())
    })
}

/// All operations ran at the load's own depth.
fn depth_level(outstanding: u32) -> Value {
    let names = ["1", "2", "4", "8", "16", "32", ">=64"];
    let level = names.len().min(outstanding.max(1).ilog2() as usize + 1) - 1;
    let share = |index: usize| Value::from(if index == level { 100.0 } else { 0.0 });
    Value::Object(names.iter().enumerate().map(|(index, name)| ((*name).to_owned(), share(index))).collect())
}

/// Batches are not counted.
fn depth_batch() -> Value {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    Value::Object(names.iter().map(|name| ((*name).to_owned(), Value::from(0.0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(time_text(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time_text(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(time_text(1_795_250_475), "Sat Nov 21 08:41:15 2026");
    }
}
