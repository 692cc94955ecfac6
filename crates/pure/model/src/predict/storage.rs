//! From one storage to another on the same platform: processors do the same, the disk does not.
//!
//! What an operation of the application computes takes as long on both. What it waits for its disk is W, the time in which everything that had
//! something to do stood still for I/O by the account of the machine's kernel (its psi.rst): what is written while something is computed is not in
//! it. Its disk's operations took S in all, each by itself. If those that were waited for were waited for from their beginning, they are W/S of all;
//! if everything went on at their end alone, they are all. Between these two bounds the geometric mean is taken. Each of them takes as much longer on
//! the other storage as a single one does there, by how many of each kind there were: W' = W + sqrt(W/S) * sum(n_k (l'_k - l_k)).
//!
//! Where there are no such accounts, W is the time in which nothing was computed, and becomes W * sum(n_k l'_k) / sum(n_k l_k). And none is done in
//! less time than the storage needs for its operations, which is what limits an application on a throttled disk ("Quantitative System
//! Performance", Lazowska et al., 1984, chapter 5: asymptotic bounds).

use virtbench_record::{DiskCounts, Footprint, OperationSpeed, Profile, StorageSpeed};

use super::sampling::{SAMPLES, draws};

/// A storage that the application ran on, and the one that it is predicted for.
#[derive(Debug, Clone, Copy)]
pub struct StoragePair<'a> {
    /// Where it ran.
    pub from: &'a StorageSpeed,
    /// Where it would run.
    pub to: &'a StorageSpeed,
}

/// What is said to limit an application where that is the storage's rate, whatever its host does.
pub(super) const STORAGE_RATE: &str = "what the storage does a second";

/// What limits the application on the other storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// It computes.
    Processor,
    /// It waits for single operations.
    Latency,
    /// The storage does no more a second.
    Rate,
}

/// What comes of it. Times are those of what takes a second where the application ran.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OnStorage {
    /// Its rate as a share of that where it ran.
    pub ratio: f64,
    /// Draws of it, ascending.
    pub draws: Vec<f64>,
    /// Computing, in seconds.
    pub computing_s: f64,
    /// Waiting for the disk, there and on the other storage, in seconds.
    pub waiting_s: [f64; 2],
    pub limit: Limit,
}

/// How far predictions are off that change nothing, by how much more for each factor of e that they change, and where the storage's rate
/// limits: deviations of the logarithm, about as the tuning set was missed by.
const LEAST_DEVIATION: f64 = 0.12;
const DEVIATION_OF_CHANGE: f64 = 0.2;
const DEVIATION_AT_LIMIT: f64 = 0.05;

/// How many times as long as its operations take one by one an application waits for them at most, where that is not measured. What goes
/// beyond is another wait.
const MOST_WAITED: f64 = 2.0;

/// # Errors
/// What is needed.
pub(super) fn on_storage(
    profile: &Profile,
    pair: StoragePair<'_>,
    processors: u32,
    seed: u64,
) -> Result<OnStorage, &'static str> {
    const NEEDS: &str = "a profile of an application in a VM whose disk's operations were counted";
    let seen = profile.footprint.value().ok_or(NEEDS)?;
    let disks = seen.disks.ok_or(NEEDS)?;
    let second = seen.elapsed_ns as f64;
    let computing_s = computing_ns(seen, processors) / second;
    let [single, other_single] = [pair.from, pair.to].map(|storage| one_by_one_ns(&disks, storage));
    let [waited_s, waiting_s] = match seen.stalls {
        Some(stalls) if disks.time_ns > 0 => {
            let waited_s = (stalls.full_ns as f64 / second).min(1.0);
            let one_by_one = (stalls.full_ns as f64 / disks.time_ns as f64).min(1.0).sqrt();
            [waited_s, (waited_s + one_by_one * (other_single - single) / second).max(0.0)]
        }
        _ => {
            let waited_s = (1.0 - computing_s).min(MOST_WAITED * single / second);
            [waited_s, if single > 0.0 { waited_s * other_single / single } else { waited_s }]
        }
    };
    // The rest takes as long on both: it is computed, slept, or fixed.
    let rest_s = 1.0 - waited_s;
    let [least, other_least] = [pair.from, pair.to].map(|storage| busy_ns(&disks, storage) / second);
    // A storage that has just done it in less time than it should need can do so elsewhere.
    let other_least = other_least / least.max(1.0);
    let one_by_one = waiting_s + rest_s;
    let limit = match () {
        () if other_least > one_by_one => Limit::Rate,
        () if waiting_s > computing_s => Limit::Latency,
        () => Limit::Processor,
    };
    let ratio = 1.0 / one_by_one.max(other_least);
    let deviation = match limit {
        Limit::Rate => DEVIATION_AT_LIMIT,
        Limit::Latency | Limit::Processor => LEAST_DEVIATION.hypot(DEVIATION_OF_CHANGE * ratio.ln()),
    };
    Ok(OnStorage {
        ratio,
        draws: draws(SAMPLES, seed, |sample| Some(ratio * (deviation * sample.normal()).exp())),
        computing_s,
        waiting_s: [waited_s, waiting_s.max(other_least - rest_s)],
        limit,
    })
}

/// How long the application would take if it waited for nothing: processors share its work.
fn computing_ns(seen: &Footprint, processors: u32) -> f64 {
    let all = (seen.cpu_ns[0] + seen.cpu_ns[1]) as f64;
    (all / f64::from(processors.max(1))).min(seen.elapsed_ns as f64)
}

/// How long the storage takes for all operations, one after the other.
fn one_by_one_ns(disks: &DiskCounts, storage: &StorageSpeed) -> f64 {
    let single = |count: u64, bytes: u64, speed: &OperationSpeed| {
        // What is longer than 4 KiB takes as much longer as its bytes do.
        let more = (bytes as f64 - count as f64 * SMALL_BYTES).max(0.0);
        count as f64 * speed.latency_ns + more / speed.bytes_per_second * 1e9
    };
    single(disks.reads, disks.read_bytes, &storage.read)
        + single(disks.writes, disks.written_bytes, &storage.write)
        + disks.flushes as f64 * storage.flush_ns
}

/// What latencies are of, in bytes.
const SMALL_BYTES: f64 = 4096.0;

/// How long it needs for them at least, many at once.
fn busy_ns(disks: &DiskCounts, storage: &StorageSpeed) -> f64 {
    let busy = |count: u64, bytes: u64, speed: &OperationSpeed| {
        (count as f64 / speed.per_second).max(bytes as f64 / speed.bytes_per_second) * 1e9
    };
    busy(disks.reads, disks.read_bytes, &storage.read)
        + busy(disks.writes, disks.written_bytes, &storage.write)
}

#[cfg(test)]
mod tests {
    use virtbench_record::{IoStalls, Source, Sourced};

    use super::super::tests::profile;
    use super::*;

    fn storage(latency_ns: f64, flush_ns: f64, per_second: f64) -> StorageSpeed {
        let speed = OperationSpeed { latency_ns, per_second, bytes_per_second: per_second * 65_536.0 };
        StorageSpeed { storage: "x".into(), read: speed, write: speed, flush_ns }
    }

    /// Of a second it computes so long, and waits for the rest; it does 1,000 small writes with 500 flushes.
    fn application(computing_s: f64) -> Profile {
        let cpu_ns = std::time::Duration::from_secs_f64(computing_s).as_nanos().try_into().unwrap();
        let footprint = Footprint {
            elapsed_ns: 1_000_000_000,
            cpu_ns: [cpu_ns, 0],
            disks: Some(DiskCounts {
                writes: 1_000,
                written_bytes: 4_096_000,
                flushes: 500,
                ..DiskCounts::default()
            }),
            ..Footprint::default()
        };
        Profile { footprint: Sourced::known(footprint, Source::User), ..profile(1500.0, &[(4096.0, 100.0)]) }
    }

    fn found(computing_s: f64, to: &StorageSpeed) -> OnStorage {
        let from = storage(100_000.0, 400_000.0, 50_000.0);
        on_storage(&application(computing_s), StoragePair { from: &from, to }, 1, 1).unwrap()
    }

    #[test]
    fn waiting_takes_as_many_times_as_long_as_its_operations_do() {
        // 1,000 * 0.1 ms + 500 * 0.4 ms = 0.3 s become 0.6 s: what was waited for 0.5 s takes 1 s.
        let twice = found(0.5, &storage(200_000.0, 800_000.0, 50_000.0));
        assert!((twice.ratio - 1.0 / 1.5).abs() < 1e-9, "{twice:?}");
        assert_eq!(twice.limit, Limit::Latency);
        // Of 0.9 s no more than 0.6 s can have been waits for the disk.
        let sleepy = found(0.1, &storage(200_000.0, 800_000.0, 50_000.0));
        assert!((sleepy.ratio - 1.0 / 1.6).abs() < 1e-9, "{sleepy:?}");
        let same = found(0.2, &storage(100_000.0, 400_000.0, 50_000.0));
        assert!((same.ratio - 1.0).abs() < 1e-9);
        // What computes does not care.
        assert!(found(0.99, &storage(200_000.0, 800_000.0, 50_000.0)).ratio > 0.98);
    }

    #[test]
    fn what_everything_stood_still_for_is_what_is_waited() {
        let with = |full_ns: u64, time_ns: u64| {
            let mut profile = application(0.99);
            let Sourced::Known { value, .. } = &mut profile.footprint else { panic!("no footprint") };
            value.stalls = Some(IoStalls { some_ns: 300_000_000, full_ns });
            value.disks = value.disks.map(|disks| DiskCounts { time_ns, ..disks });
            let (from, to) =
                (storage(100_000.0, 400_000.0, 50_000.0), storage(1_100_000.0, 400_000.0, 50_000.0));
            on_storage(&profile, StoragePair { from: &from, to: &to }, 1, 1).unwrap().ratio
        };
        // 1,000 writes took 0.4 s in all, of which 4 ms were waited: a hundredth of them to all, a tenth. Each of those takes 1 ms longer,
        // however busy the processor says that it was.
        assert!((with(4_000_000, 400_000_000) - 1.0 / 1.1).abs() < 1e-9);
        // What is written while something is computed is not waited for, and nothing is waited for twice.
        assert!((with(0, 300_000_000) - 1.0).abs() < 1e-9);
        assert!((with(30_000_000, 10_000_000) - 1.0 / 2.0).abs() < 1e-9);
        // Without an account of them the hundredth in which nothing was computed becomes 4.33 times as long: 1.3 s for 0.3 s.
        assert!((with(0, 0) - 1.0 / (0.99 + 0.01 * 1.3 / 0.3)).abs() < 1e-9);
    }

    #[test]
    fn no_application_is_faster_than_its_storage() {
        // 1,000 writes at 250 a second.
        let limited = found(0.9, &storage(100_000.0, 400_000.0, 250.0));
        assert!((limited.ratio - 0.25).abs() < 1e-9, "{limited:?}");
        assert_eq!(limited.limit, Limit::Rate);
    }

    #[test]
    fn the_more_changes_the_less_is_known() {
        let width = |found: &OnStorage| (found.draws[380] / found.draws[20]).ln();
        let near = found(0.5, &storage(110_000.0, 400_000.0, 50_000.0));
        let far = found(0.1, &storage(2_000_000.0, 8_000_000.0, 50_000.0));
        assert!(width(&far) > 1.5 * width(&near), "{} {}", width(&far), width(&near));
    }

    #[test]
    fn what_was_not_counted_is_asked_for() {
        let from = storage(1.0, 1.0, 1.0);
        let pair = StoragePair { from: &from, to: &from };
        assert!(on_storage(&profile(5.0, &[(4096.0, 100.0)]), pair, 1, 1).is_err());
    }
}
