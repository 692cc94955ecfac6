//! What a machine's kernel is asked for, kind by kind: system calls, faults, switches, commits.
//!
//! Counters of the kernel's perf events, one a tracepoint and processor. They count in the kernel: nothing is
//! written, read or woken for an event, and no task is slowed down by being switched. They are the machine's,
//! whoever asks; on a quiet machine that is the application and the kernel's own threads for it.

mod kind;
mod look;
mod tracefs;
mod usage;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use thiserror::Error;

pub use kind::{COUNT_KINDS, CountKind};
pub use look::{Look, machine_cpu_ns};
pub use tracefs::tracefs;
pub use usage::{process_cpu_ns, thread_cpu_ns};

/// The most processors that are counted on.
const MOST_PROCESSORS: i32 = 1024;
const EVERYBODY: i32 = -1;
const THIS_THREAD: i32 = 0;
const ANY_PROCESSOR: i32 = -1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;

/// Why nothing can be counted.
#[derive(Debug, Error)]
pub enum CountersError {
    /// Tracepoints cannot be found.
    #[error("tracefs cannot be mounted ({0}): root is needed, and a kernel with tracing")]
    Tracefs(io::Error),
    /// The kernel refuses counters.
    #[error(
        "the kernel refuses to count {event}: {source}; root is needed, or kernel.perf_event_paranoid=-1"
    )]
    Refused {
        /// What was to be counted.
        event: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// None of the tracepoints is there.
    #[error("this kernel has none of the tracepoints")]
    None,
}

/// Whose events do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOut {
    /// Everybody's count.
    Nobody,
    /// Those of the thread that asks.
    ThisThread,
}

/// Counters of one kind.
#[derive(Debug)]
struct Counting {
    name: &'static str,
    /// One a tracepoint and processor.
    machine: Vec<File>,
    /// One a tracepoint, for the thread whose events are left out.
    own: Vec<File>,
}

/// Counters that are running.
#[derive(Debug)]
pub struct Counters(Vec<Counting>);

impl Counters {
    /// Begins to count [`COUNT_KINDS`].
    ///
    /// # Errors
    /// It is not permitted, or the kernel does not offer it.
    pub fn start(leave_out: LeaveOut) -> Result<Self, CountersError> {
        let mount = tracefs().map_err(|error| CountersError::Tracefs(error.into()))?;
        let root = format!("/proc/self/fd/{}/events", mount.as_raw_fd());
        let processors = online();
        let mut counting = Vec::new();
        for kind in &COUNT_KINDS {
            let mut counting_kind = Counting { name: kind.name, machine: Vec::new(), own: Vec::new() };
            for event in kind.events {
                let path = format!("{root}/{}/id", kind::file_of(event));
                let Some(id) = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) else {
                    continue;
                };
                let refused = |source| CountersError::Refused { event, source };
                for processor in &processors {
                    counting_kind.machine.push(open(id, EVERYBODY, *processor).map_err(refused)?);
                }
                if leave_out == LeaveOut::ThisThread {
                    counting_kind.own.push(open(id, THIS_THREAD, ANY_PROCESSOR).map_err(refused)?);
                }
            }
            if !counting_kind.machine.is_empty() {
                counting.push(counting_kind);
            }
        }
        if counting.is_empty() { Err(CountersError::None) } else { Ok(Self(counting)) }
    }

    /// What was counted since the start, by the names of [`COUNT_KINDS`]; kinds that the kernel cannot tell
    /// are left out.
    ///
    /// # Errors
    /// A counter cannot be read.
    pub fn read(&self) -> io::Result<BTreeMap<String, u64>> {
        let value = |mut file: &File| -> io::Result<u64> {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        let sum = |files: &[File]| files.iter().map(value).sum::<io::Result<u64>>();
        let of =
            |kind: &Counting| Ok((kind.name.to_owned(), sum(&kind.machine)?.saturating_sub(sum(&kind.own)?)));
        self.0.iter().map(of).collect()
    }
}

/// The processors that are there, by number.
fn online() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    let range = |word: &str| -> Option<Vec<i32>> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?..=last.parse::<i32>().ok()?.min(MOST_PROCESSORS)).collect())
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// `struct perf_event_attr`, as its first version was.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint: u64,
}

fn open(tracepoint: u64, thread: i32, processor: i32) -> io::Result<File> {
    let attributes =
        Attributes { kind: PERF_TYPE_TRACEPOINT, size: 64, config: tracepoint, ..Attributes::default() };
    // SAFETY: the structure has the size that it says and lives through the call, which reads it only.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_or_the_reason_is_told() {
        let counters = match Counters::start(LeaveOut::Nobody) {
            Ok(counters) => counters,
            Err(error) => {
                // Without privileges there is nothing to count, and the message says what is needed.
                assert!(error.to_string().contains("root is needed"), "{error}");
                return;
            }
        };
        let before = counters.read().unwrap();
        for _ in 0..100 {
            let _ = fs::read_dir("/proc/self/fd").unwrap().count();
        }
        let after = counters.read().unwrap();
        for name in ["open", "list"] {
            assert!(after[name] - before[name] >= 100, "{name}: {before:?} {after:?}");
        }
        assert!(after["call"] - before["call"] > after["open"] - before["open"]);
    }
}
