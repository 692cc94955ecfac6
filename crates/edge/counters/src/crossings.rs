//! How often the kernel is entered, and what for.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use virtbench_record::Crossings;

use crate::event::{Attributes, online, open};
use crate::tracefs::tracefs;

const PERF_TYPE_TRACEPOINT: u32 = 2;

/// System calls that name a file, as the kernel's events are called. A kernel has some of them.
const NAMING: [&str; 18] = [
    "access",
    "chdir",
    "chmod",
    "chown",
    "execve",
    "faccessat",
    "faccessat2",
    "fchmodat",
    "fchownat",
    "lstat",
    "newfstatat",
    "open",
    "openat",
    "readlink",
    "readlinkat",
    "stat",
    "statx",
    "utimensat",
];

/// Those that make, rename or remove a name.
const CHANGING: [&str; 14] = [
    "creat",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "symlink",
    "symlinkat",
    "truncate",
    "unlink",
    "unlinkat",
];

/// Those that may make a name, and do where their flags have `O_CREAT`.
const MAKING: [&str; 2] = ["open", "openat"];
const WITH_O_CREAT: &CStr = c"flags & 0x40";
/// `PERF_EVENT_IOC_SET_FILTER`: `_IOW('$', 6, char *)`.
const SET_FILTER: libc::Ioctl = 0x4008_2406;

/// Counters of system calls, one a processor and kind. While they live each call takes longer, by some tenths of a microsecond.
#[derive(Debug)]
pub(crate) struct CrossingCounters {
    calls: Vec<File>,
    naming: Vec<File>,
    changing: Vec<File>,
}

impl CrossingCounters {
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
        let of = |names: &[&str]| -> io::Result<Vec<File>> {
            let known = names.iter().map(|name| events.join(format!("syscalls/sys_enter_{name}")));
            let counted = known.filter(|event| event.exists()).map(|event| counters(&event));
            Ok(counted.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let making = of(&MAKING)?;
        if making.is_empty() {
            return Err(io::Error::other("it has no events of single system calls, CONFIG_FTRACE_SYSCALLS"));
        }
        making.iter().try_for_each(|counter| filter(counter, WITH_O_CREAT))?;
        Ok(Self {
            calls: counters(&events.join("raw_syscalls/sys_enter"))?,
            naming: of(&NAMING)?,
            changing: of(&CHANGING)?.into_iter().chain(making).collect(),
        })
    }

    /// Calls since the start, and the rest since the machine's; nothing where one cannot be read.
    pub(crate) fn read(&self) -> Option<Crossings> {
        let (stat, vmstat) =
            (fs::read_to_string("/proc/stat").ok()?, fs::read_to_string("/proc/vmstat").ok()?);
        Some(Crossings {
            calls: sum(&self.calls)?,
            names: sum(&self.naming)?,
            changes: sum(&self.changing)?,
            faults: number(&vmstat, "pgfault")?,
            forks: number(&stat, "processes")?,
        })
    }
}

/// Counters of an event, one a processor.
fn counters(event: &Path) -> io::Result<Vec<File>> {
    let config = fs::read_to_string(event.join("id"))?.trim().parse().map_err(io::Error::other)?;
    let attributes = Attributes { kind: PERF_TYPE_TRACEPOINT, size: 64, config, ..Attributes::default() };
    online().into_iter().map(|processor| open(&attributes, processor)).collect()
}

/// Has it count those events alone that a condition on their fields holds for.
fn filter(counter: &File, condition: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads the string, which ends with a zero and lives through the call.
    let set = unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, condition.as_ptr()) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Their sum; nothing where one cannot be read.
fn sum(counters: &[File]) -> Option<u64> {
    let value = |mut counter: &File| {
        let mut word = [0; 8];
        counter.read_exact(&mut word).ok()?;
        Some(u64::from_ne_bytes(word))
    };
    counters.iter().map(value).sum()
}

/// The number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_is_asked_for_is_counted() {
        let counters = CrossingCounters::start();
        assert_eq!(counters.as_ref().err(), None, "this test counts system calls: run it as root");
        let counters = counters.unwrap();
        let before = counters.read().unwrap();
        for _ in 0..10_000 {
            let _ = rustix::process::getpid();
        }
        assert!(std::process::Command::new("true").status().unwrap().success());
        let seen = counters.read().unwrap().since(&before);
        assert!(seen.calls >= 10_000, "{seen:?}");
        assert!(seen.names >= 1, "{seen:?}");
        assert!(seen.forks >= 1 && seen.faults >= 10, "{seen:?}");
        let (folder, before) = (tempfile::tempdir().unwrap(), counters.read().unwrap());
        let name = folder.path().join("made");
        for _ in 0..1_000 {
            fs::write(&name, "").unwrap();
            fs::metadata(&name).unwrap();
            fs::remove_file(&name).unwrap();
        }
        let seen = counters.read().unwrap().since(&before);
        let Crossings { names, changes, .. } = seen;
        assert!(names >= 2_000, "{seen:?}");
        assert!(
            changes >= 2_000 && changes < names + 1_000,
            "what is only looked at changes nothing: {seen:?}"
        );
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert_eq!(number("pgfaults 1\npgfault 27\n", "pgfault"), Some(27));
        assert_eq!(number("pgfault x\n", "pgfault"), None);
    }
}
