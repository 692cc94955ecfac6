//! How often the kernel is entered, and what for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use virtbench_record::Crossings;

use crate::event::{Attributes, online, open};
use crate::tracefs::tracefs;

const PERF_TYPE_TRACEPOINT: u32 = 2;

/// System calls that name a file, as the kernel's events are called. A kernel has some of them.
const NAMING: [&str; 30] = [
    "access",
    "chdir",
    "chmod",
    "chown",
    "creat",
    "execve",
    "faccessat",
    "faccessat2",
    "fchmodat",
    "fchownat",
    "link",
    "linkat",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "stat",
    "statx",
    "truncate",
    "unlink",
    "unlinkat",
    "utimensat",
];

/// Counters of system calls, one a processor and kind. While they live each call takes longer, by some tenths of a microsecond.
#[derive(Debug)]
pub(crate) struct CallCounters {
    all: Vec<File>,
    naming: Vec<File>,
}

impl CallCounters {
    /// Begins to count.
    ///
    /// # Errors
    /// It is not permitted, or the kernel does not offer it, in words.
    pub(crate) fn start() -> Result<Self, String> {
        Self::open().map_err(|error| format!("the kernel refuses ({error}); root is needed"))
    }

    fn open() -> io::Result<Self> {
        let mount = tracefs()?;
        let events = PathBuf::from(format!("/proc/self/fd/{}/events", mount.as_raw_fd()));
        let naming = NAMING.iter().map(|name| events.join(format!("syscalls/sys_enter_{name}")));
        let naming = naming.filter(|event| event.exists()).map(|event| counters(&event));
        Ok(Self {
            all: counters(&events.join("raw_syscalls/sys_enter"))?,
            naming: naming.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect(),
        })
    }
}

/// Counters of an event, one a processor.
fn counters(event: &Path) -> io::Result<Vec<File>> {
    let config = fs::read_to_string(event.join("id"))?.trim().parse().map_err(io::Error::other)?;
    let attributes = Attributes { kind: PERF_TYPE_TRACEPOINT, size: 64, config, ..Attributes::default() };
    online().into_iter().map(|processor| open(&attributes, processor)).collect()
}

/// Their sum; nothing where one cannot be read, or there is none.
fn sum(counters: &[File]) -> Option<u64> {
    let value = |mut counter: &File| {
        let mut word = [0; 8];
        counter.read_exact(&mut word).ok()?;
        Some(u64::from_ne_bytes(word))
    };
    if counters.is_empty() { None } else { counters.iter().map(value).sum() }
}

/// What was counted since the machine's start, and of calls since that of their counters; nothing where the machine does not say.
pub(crate) fn crossings(calls: Option<&CallCounters>) -> Option<Crossings> {
    let vmstat = fs::read_to_string("/proc/vmstat").ok()?;
    Some(Crossings {
        calls: calls.and_then(|counters| sum(&counters.all)),
        names: calls.and_then(|counters| sum(&counters.naming)),
        faults: number(&vmstat, "pgfault")?,
    })
}

/// Operations that whole disks were done with since the machine's start: reads, writes, discards and flushes (the kernel's iostats.rst);
/// nothing where it does not say.
pub(crate) fn disk_operations() -> Option<u64> {
    let stats = fs::read_to_string("/proc/diskstats").ok()?;
    let of_line = |line: &str| -> Option<u64> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let disk = Path::new("/sys/block").join(fields.get(2)?);
        let done = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        disk.exists().then(|| done(3) + done(7) + done(14) + done(18))
    };
    Some(stats.lines().filter_map(of_line).sum())
}

/// The number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_the_kernel_is_asked_for_is_counted() {
        let counters = CallCounters::start();
        assert_eq!(counters.as_ref().err(), None, "this test counts system calls: run it as root");
        let counters = counters.ok();
        let before = crossings(counters.as_ref()).unwrap();
        for _ in 0..10_000 {
            rustix::process::getpid();
        }
        assert!(std::process::Command::new("true").status().unwrap().success());
        let seen = crossings(counters.as_ref()).unwrap().since(&before);
        assert!(seen.calls.unwrap() >= 10_000, "{seen:?}");
        assert!(seen.names.unwrap() >= 1, "{seen:?}");
        assert!(seen.faults >= 10, "{seen:?}");
        assert_eq!(crossings(None).unwrap().calls, None);
    }

    #[test]
    fn what_disks_do_is_counted() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        let before = disk_operations().unwrap();
        (&file).write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
        assert!(disk_operations().unwrap() > before);
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert_eq!(number("pgfaults 1\npgfault 27\n", "pgfault"), Some(27));
        assert_eq!(number("pgfault x\n", "pgfault"), None);
    }
}
