//! Cycles and instructions of some processors, guest and host, user and kernel told apart.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::event::{Attributes, open};

const PERF_TYPE_HARDWARE: u32 = 0;

const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;

const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`: counters that take turns are extrapolated.
const TIMES: u64 = 1 | 2;

const EXCLUDE_USER: u64 = 1 << 4;

const EXCLUDE_KERNEL: u64 = 1 << 5;

const EXCLUDE_IDLE: u64 = 1 << 7;

const EXCLUDE_HOST: u64 = 1 << 19;

const EXCLUDE_GUEST: u64 = 1 << 20;

/// Cycles and instructions of one kind of code.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Cycles in which the processors were not halted.
    pub cycles: f64,
    /// Instructions.
    pub instructions: f64,
}

/// What processors have executed, by whose code it was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CodeCounts {
    /// User code of this host.
    pub host_user: Counted,
    /// Its kernel.
    pub host_kernel: Counted,
    /// User code of guests that the processors run themselves.
    pub guest_user: Counted,
    /// Their kernels.
    pub guest_kernel: Counted,
}

impl CodeCounts {
    /// What was counted since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Counted, then: Counted| Counted {
            cycles: (now.cycles - then.cycles).max(0.0),
            instructions: (now.instructions - then.instructions).max(0.0),
        };
        Self {
            host_user: less(self.host_user, earlier.host_user),
            host_kernel: less(self.host_kernel, earlier.host_kernel),
            guest_user: less(self.guest_user, earlier.guest_user),
            guest_kernel: less(self.guest_kernel, earlier.guest_kernel),
        }
    }
}

/// Counters that run.
#[derive(Debug)]
pub struct HardwareCounters(Vec<[[File; 2]; 4]>);

impl HardwareCounters {
    /// Begins to count on these processors, for all that runs there.
    ///
    /// # Errors
    /// Not permitted, or the processors have no counters that can be reached from here.
    pub fn start(processors: &[usize]) -> io::Result<Self> {
        let kinds = [
            EXCLUDE_KERNEL | EXCLUDE_GUEST,
            EXCLUDE_USER | EXCLUDE_GUEST,
            EXCLUDE_KERNEL | EXCLUDE_HOST,
            EXCLUDE_USER | EXCLUDE_HOST,
        ];
        let event = |config, flags, processor| {
            let (kind, read_format) = (PERF_TYPE_HARDWARE, TIMES);
            let flags = flags | EXCLUDE_IDLE;
            open(
                &Attributes { kind, size: 64, config, read_format, flags, ..Attributes::default() },
                processor,
            )
        };
        let of = |processor: &usize| -> io::Result<[[File; 2]; 4]> {
            let processor = i32::try_from(*processor).map_err(io::Error::other)?;
            let pair = |flags| -> io::Result<[File; 2]> {
                Ok([
                    event(PERF_COUNT_HW_CPU_CYCLES, flags, processor)?,
                    event(PERF_COUNT_HW_INSTRUCTIONS, flags, processor)?,
                ])
            };
            Ok([pair(kinds[0])?, pair(kinds[1])?, pair(kinds[2])?, pair(kinds[3])?])
        };
        processors.iter().map(of).collect::<io::Result<_>>().map(Self)
    }

    /// What was counted since the start.
    ///
    /// # Errors
    /// A counter cannot be read, or never had its turn.
    pub fn read(&self) -> io::Result<CodeCounts> {
        let mut counts = CodeCounts::default();
        for processor in &self.0 {
            let kinds = [
                &mut counts.host_user,
                &mut counts.host_kernel,
                &mut counts.guest_user,
                &mut counts.guest_kernel,
            ];
            for (kind, [cycles, instructions]) in kinds.into_iter().zip(processor) {
                kind.cycles += value(cycles)?;
                kind.instructions += value(instructions)?;
            }
        }
        Ok(counts)
    }
}

fn value(mut event: &File) -> io::Result<f64> {
    let mut bytes = [0; 24];
    event.read_exact(&mut bytes)?;
    extrapolated(&bytes)
}

/// A counter's value, extrapolated to the time in which it did not have its turn.
fn extrapolated(bytes: &[u8; 24]) -> io::Result<f64> {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word) as f64
    };
    let [value, enabled, running] = [word(0), word(8), word(16)];
    match (enabled > 0.0, running > 0.0) {
        (false, _) => Ok(0.0),
        (true, false) => Err(io::Error::other("a counter never had its turn")),
        (true, true) => Ok(value * enabled / running),
    }
}

/// Where KVM has a folder for each guest, `PROCESS-DESCRIPTOR`.
pub const KVM_FOLDER: &str = "/sys/kernel/debug/kvm";

/// Everything that KVM counts of the guest of this process, by its name there.
///
/// # Errors
/// There is no such guest in `folder`, or it cannot be read; it needs root, debugfs and a guest under KVM.
pub fn kvm_counts(folder: &Path, process: u32) -> io::Result<BTreeMap<String, u64>> {
    let begin = format!("{process}-");
    let of_guest = fs::read_dir(folder)?
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("KVM has no guest of process {process}"))
        })?;
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(of_guest.path())?.flatten() {
        let text = fs::read_to_string(entry.path());
        if let Some(count) = text.ok().and_then(|text| text.trim().parse().ok()) {
            counts.insert(entry.file_name().to_string_lossy().into_owned(), count);
        }
    }
    Ok(counts)
}

/// What was counted from one moment to another, for each of so many transactions; without what stood still.
#[must_use]
pub fn per_transaction(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    transactions: u64,
) -> BTreeMap<String, f64> {
    let grown = after.iter().filter_map(|(name, after)| {
        let grown = after.saturating_sub(*before.get(name)?);
        (grown > 0 && transactions > 0).then(|| (name.clone(), grown as f64 / transactions as f64))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn counters_that_take_turns_are_extrapolated() {
        let recorded = |words: [u64; 3]| {
            let mut bytes = [0; 24];
            bytes
                .iter_mut()
                .zip(words.iter().flat_map(|word| word.to_ne_bytes()))
                .for_each(|(to, from)| *to = from);
            bytes
        };
        assert_eq!(extrapolated(&recorded([3000, 100, 100])).unwrap(), 3000.0);
        assert_eq!(extrapolated(&recorded([3000, 100, 50])).unwrap(), 6000.0);
        assert!(extrapolated(&recorded([0, 100, 0])).is_err());
    }

    #[test]
    fn what_cannot_be_counted_is_an_error_and_what_can_is_counted() {
        match HardwareCounters::start(&[0]) {
            // A processor has fewer counters than there are events: they take turns, a few milliseconds each.
            Ok(counters) => {
                let begun = Instant::now();
                let counts = loop {
                    match counters.read() {
                        Err(_) if begun.elapsed() < Duration::from_secs(5) => {
                            thread::sleep(Duration::from_millis(20))
                        }
                        counts => break counts.unwrap(),
                    }
                };
                assert!(counts.host_user.cycles >= 0.0);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        assert!(HardwareCounters::start(&[100_000]).is_err(), "there is no such processor");
    }

    #[test]
    fn the_guest_of_a_process_is_found_among_others() {
        let folder = std::env::temp_dir().join(format!("virtbench-kvm-{}", std::process::id()));
        for (guest, exits) in [("7-11", 1), ("77-12", 5000)] {
            fs::create_dir_all(folder.join(guest).join("vcpu0")).unwrap();
            fs::write(folder.join(guest).join("exits"), format!("{exits}\n")).unwrap();
            fs::write(folder.join(guest).join("io_exits"), "40\n").unwrap();
        }
        let counts = kvm_counts(&folder, 77);
        let missing = kvm_counts(&folder, 8);
        fs::remove_dir_all(&folder).unwrap();
        let before = counts.unwrap();
        assert_eq!(before, BTreeMap::from([("exits".into(), 5000), ("io_exits".into(), 40)]));
        assert!(missing.unwrap_err().to_string().contains("no guest of process 8"));
        let after = BTreeMap::from([("exits".into(), 5600), ("io_exits".into(), 40)]);
        assert_eq!(per_transaction(&before, &after, 100), BTreeMap::from([("exits".into(), 6.0)]));
        assert_eq!(per_transaction(&before, &after, 0), BTreeMap::new());
    }
}
