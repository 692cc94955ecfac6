//! What was seen, as a profile: each figure from the best source there is.

use std::collections::BTreeMap;
use std::time::Duration;

use virtbench_record::{Band, Footprint, MAX_WORKERS, PROFILE_FORMAT, Profile, Source, Sourced};

use crate::analysis::{Counted, Summary};
use crate::block_stat::{self, DiskCounters};
use crate::sizes::shares;
use crate::tree::Accounts;

/// Bytes written through the page cache, as a share of all, below which they are not worth a word.
const WORTH_SAYING: f64 = 0.02;

/// Everything that was seen of an application.
#[derive(Debug)]
pub(crate) struct Observation {
    pub name: String,
    pub elapsed: Duration,
    pub accounts: Accounts,
    /// Whole disks that moved anything, for any program.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Ticks of the kernel's own threads meanwhile.
    pub kernel_ticks: u64,
    /// The block layer's events, or why there are none.
    pub events: Result<Summary, String>,
    pub issuing_threads: u32,
    pub hidden_processes: usize,
    /// What the machine did meanwhile, or why that is not known.
    pub footprint: Result<Footprint, String>,
}

/// The profile.
pub(crate) fn figures(seen: &Observation) -> Profile {
    let mut profile = match &seen.events {
        Ok(summary) => from_events(seen, summary),
        Err(why) => from_accounts(seen, why),
    };
    if seen.hidden_processes > 0 {
        profile.notes.push(format!(
            "The I/O accounts of {} processes could not be read: run as their user, or as root.",
            seen.hidden_processes
        ));
    }
    profile
}

/// A profile with what needs no events.
fn started(seen: &Observation, why: &str) -> Profile {
    let seconds = seen.elapsed.as_secs_f64();
    let percent = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64 / seconds * 100.0;
    let processors =
        std::thread::available_parallelism().map(|count| u32::try_from(count.get()).unwrap_or(u32::MAX));
    Profile {
        profile_format: PROFILE_FORMAT,
        name: seen.name.clone(),
        host: None,
        host_use: None,
        elapsed_ns: u64::try_from(seen.elapsed.as_nanos()).ok(),
        devices: Vec::new(),
        capacity: None,
        io_per_second: Sourced::unavailable(why),
        reads_per_second: Sourced::unavailable(why),
        writes_per_second: Sourced::unavailable(why),
        bytes_per_second: Sourced::unavailable(why),
        sizes: Sourced::unavailable(why),
        random: Sourced::unavailable(why),
        workers: Sourced::unavailable(why),
        outstanding_mean: Sourced::unavailable(why),
        outstanding_peak_per_worker: Sourced::unavailable(why),
        latency_ns: Sourced::unavailable(why),
        think_ns: Sourced::unavailable(why),
        cpu_user_percent: Sourced::known(percent(seen.accounts.user_ticks), Source::ProcessStat),
        cpu_system_percent: Sourced::known(percent(seen.accounts.system_ticks), Source::ProcessStat),
        cpu_kernel_threads_percent: Sourced::known(percent(seen.kernel_ticks), Source::ProcessStat),
        copied_bytes_per_second: Sourced::known(
            seen.accounts.copied_bytes as f64 / seconds,
            Source::ProcessIo,
        ),
        footprint: match &seen.footprint {
            Ok(footprint) => Sourced::known(footprint.clone(), Source::PerfEvents),
            Err(why) => Sourced::unavailable(why.clone()),
        },
        processors: processors.map_or_else(
            |error| Sourced::unavailable(error.to_string()),
            |count| Sourced::known(count, Source::ProcessStat),
        ),
        command: Vec::new(),
        metric: None,
        notes: Vec::new(),
    }
}

fn from_events(seen: &Observation, summary: &Summary) -> Profile {
    let mut profile = started(seen, "no operation was seen");
    let seconds = seen.elapsed.as_secs_f64();
    let own = &summary.own;
    let cached = cached_writes(seen, own);
    let written_back = written_back(cached, &summary.kernel);
    if written_back.is_some() {
        profile.notes.push(format!(
            "{:.1} MB were written through the page cache. Who is behind a write-back the kernel does not say: their \
             number, sizes and order are those of all that its threads wrote.",
            cached / 1e6
        ));
    } else if cached > 0.0 {
        profile.notes.push(format!(
            "{:.1} MB were written to the page cache and not written back while it was watched: they are not counted.",
            cached / 1e6
        ));
    }
    if summary.lost > 0 {
        profile.notes.push(format!(
            "{} events of the block layer came too fast to be read: rates are too low by about that much.",
            summary.lost
        ));
    }
    let back = written_back.unwrap_or_default();
    let reads = own.reads as f64;
    let writes = own.writes as f64 + back.operations;
    let known = |count: f64| Sourced::known(count / seconds, Source::Tracefs);
    if reads + writes <= 0.0 {
        return profile;
    }
    profile.io_per_second = known(reads + writes);
    profile.reads_per_second = known(reads);
    profile.writes_per_second = known(writes);
    profile.bytes_per_second = known((own.read_bytes + own.written_bytes) as f64 + back.bytes);
    let mut sizes: BTreeMap<u64, f64> =
        own.sizes.iter().map(|(size, count)| (*size, *count as f64)).collect();
    for (size, count) in &back.sizes {
        *sizes.entry(*size).or_default() += count;
    }
    profile.sizes = Sourced::known(shares(&sizes), Source::Tracefs);
    let (random, sequential) = (own.random as f64 + back.random, own.sequential as f64 + back.sequential);
    profile.random = if random + sequential > 0.0 {
        Sourced::known(Band::exactly(100.0 * random / (random + sequential)), Source::Tracefs)
    } else {
        Sourced::unavailable("no thread issued two operations")
    };
    profile.devices = summary.disks.iter().map(|disk| block_stat::name(*disk)).collect();
    if own.operations() > 0 {
        own_times(&mut profile, summary, seconds);
    }
    profile
}

/// Who waits how long for what; only of operations that the application's own threads issued.
fn own_times(profile: &mut Profile, summary: &Summary, seconds: f64) {
    let known = |value: Option<f64>, why: &str| {
        value.map_or_else(|| Sourced::unavailable(why), |value| Sourced::known(value, Source::Tracefs))
    };
    profile.workers = Sourced::known(summary.workers.clamp(1, MAX_WORKERS), Source::Tracefs);
    profile.outstanding_mean = Sourced::known(summary.busy_s / seconds, Source::Tracefs);
    // What was seen starts and ends in the middle of operations, and some overlap: Little's law says how
    // long an operation of a worker that waits for each can take and pause.
    let cycle_s = f64::from(summary.workers.max(1)) * seconds / summary.own.operations() as f64;
    let overlaps = summary.response_s.is_some_and(|response_s| response_s > cycle_s);
    profile.outstanding_peak_per_worker = summary.depth_per_worker.map_or_else(
        || Sourced::unavailable("no completion was seen"),
        |depth| Sourced::known(depth.max(1 + u32::from(overlaps)), Source::Tracefs),
    );
    let left_s = (cycle_s - summary.response_s.unwrap_or(0.0)).max(0.0);
    let think_s = summary.think_s.map(|think_s| think_s.min(left_s));
    profile.latency_ns = known(summary.response_s.map(|s| s * 1e9), "no completion was seen");
    profile.think_ns = known(think_s.map(|s| s * 1e9), "no worker was ever without I/O in flight");
}

/// Bytes that went into the page cache to be written later.
fn cached_writes(seen: &Observation, own: &Counted) -> f64 {
    let cached = seen.accounts.written_bytes.saturating_sub(own.written_bytes) as f64;
    let all = (seen.accounts.read_bytes + seen.accounts.written_bytes) as f64;
    if cached > WORTH_SAYING * all { cached } else { 0.0 }
}

/// Write-back that is put down to the application.
#[derive(Debug, Default)]
struct WrittenBack {
    operations: f64,
    bytes: f64,
    sizes: BTreeMap<u64, f64>,
    random: f64,
    sequential: f64,
}

/// The kernel's writes, shrunk to the bytes that the application is behind. More than the kernel wrote
/// cannot be put down to it.
fn written_back(cached: f64, kernel: &Counted) -> Option<WrittenBack> {
    let bytes = kernel.written_bytes as f64;
    if cached <= 0.0 || bytes <= 0.0 {
        return None;
    }
    let share = (cached / bytes).min(1.0);
    Some(WrittenBack {
        operations: share * kernel.writes as f64,
        bytes: share * bytes,
        sizes: kernel.sizes.iter().map(|(size, count)| (*size, share * *count as f64)).collect(),
        random: share * kernel.random as f64,
        sequential: share * kernel.sequential as f64,
    })
}

/// Without events: bytes from the processes, the rest from whole disks in proportion to bytes.
fn from_accounts(seen: &Observation, why: &str) -> Profile {
    let mut profile = started(seen, why);
    let seconds = seen.elapsed.as_secs_f64();
    let disk = seen.disks.values().fold(DiskCounters::default(), |sum, disk| sum.plus(*disk));
    let (read, written) = (seen.accounts.read_bytes as f64, seen.accounts.written_bytes as f64);
    let share = |own: f64, all: u64| if all > 0 { (own / all as f64).min(1.0) } else { 0.0 };
    let (of_reads, of_writes) = (share(read, disk.read_bytes), share(written, disk.written_bytes));
    let reads = of_reads * disk.reads as f64;
    let writes = of_writes * disk.writes as f64;
    let known = |count: f64| Sourced::known(count / seconds, Source::BlockStatistics);
    profile.random = Sourced::unavailable(format!("offsets cannot be seen: {why}"));
    profile.notes.push(format!("The block layer's events were not to be had: {why}."));
    if reads + writes <= 0.0 {
        return profile;
    }
    profile.io_per_second = known(reads + writes);
    profile.reads_per_second = known(reads);
    profile.writes_per_second = known(writes);
    // What the disks were given of it: written bytes may stay in the page cache.
    let bytes = of_reads * disk.read_bytes as f64 + of_writes * disk.written_bytes as f64;
    profile.bytes_per_second = Sourced::known(bytes / seconds, Source::ProcessIo);
    if seen.issuing_threads > 0 {
        profile.workers = Sourced::known(seen.issuing_threads.min(MAX_WORKERS), Source::ProcessIo);
    }
    let milliseconds = of_reads * disk.read_ms as f64 + of_writes * disk.write_ms as f64;
    profile.latency_ns = Sourced::known(milliseconds / (reads + writes) * 1e6, Source::BlockStatistics);
    profile.outstanding_mean = Sourced::known(milliseconds / 1e3 / seconds, Source::BlockStatistics);
    profile.devices = seen.disks.keys().cloned().collect();
    let own = 100.0 * (read + written) / ((disk.read_bytes + disk.written_bytes) as f64).max(1.0);
    profile.notes.push(format!(
        "Operations are those of the whole disks, shared out by bytes: the application is behind {:.0} % of them.",
        own.min(100.0)
    ));
    profile
}
