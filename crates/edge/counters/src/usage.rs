//! Processor time of this thread, of this process and of the machine.

use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

/// User and system time of the calling thread, in nanoseconds. The kernel splits their sum by the ticks that it has seen, so that
/// what is shorter than a tick may be on either side.
#[must_use]
pub fn thread_cpu_ns() -> [u64; 2] {
    // The kernel brings a running thread's account up to date when its clock is read; getrusage alone would give what
    // stood at the last tick, nothing of what is shorter.
    let _ = thread_clock_ns();
    cpu_ns(libc::RUSAGE_THREAD)
}

/// Processor time of the calling thread, in nanoseconds, without a split.
#[must_use]
pub fn thread_clock_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: clock_gettime fills the struct it is given; zeroed is valid for it should it fail.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// CPU time of this process, in nanoseconds: user and system.
#[must_use]
pub fn process_cpu_ns() -> [u64; 2] {
    cpu_ns(libc::RUSAGE_SELF)
}

fn cpu_ns(who: libc::c_int) -> [u64; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given; zeroed is valid for it should it fail.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000)
}

/// What all processors did since boot, in nanoseconds: user code, and system code with interrupts;
/// nothing where the kernel does not say.
#[must_use]
pub fn machine_cpu_ns() -> Option<[u64; 2]> {
    machine_ns([&[0, 1], &[2, 5, 6]])
}

/// Sums over the columns of all processors together, in nanoseconds (proc(5), `stat`).
fn machine_ns<const N: usize>(columns: [&[usize]; N]) -> Option<[u64; N]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let sum =
        |places: &[usize]| places.iter().map(|place| ticks.get(*place).copied().unwrap_or(0)).sum::<u64>();
    // SAFETY: sysconf reads a constant of the system and has no memory effects.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(columns.map(|places| sum(places) * (1_000_000_000 / per_second)))
}

/// How long the calling thread has been ready to run without a processor, in nanoseconds: others had them, or its control group had
/// used up its quota. Nothing where the kernel does not count it (proc(5), `schedstat`).
#[must_use]
pub fn thread_waiting_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How long the control groups of this process were held back because a quota was used up, in nanoseconds: that of the one that
/// was held back longest. Nothing where no group that can be seen has a quota's account.
#[must_use]
pub fn throttled_ns() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    folders(&groups, &mounts)
        .into_iter()
        .filter_map(|folder| throttled_of(&fs::read_to_string(folder.join("cpu.stat")).ok()?))
        .max()
}

/// Out of `cpu.stat`: microseconds of cgroup v2, nanoseconds of v1.
fn throttled_of(text: &str) -> Option<u64> {
    let number = |key: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
    };
    number("throttled_usec ").map(|us| us.saturating_mul(1000)).or_else(|| number("throttled_time "))
}

/// The folders of the control groups that this process is in, and of those above them, as far as they can be seen.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let of_version_2 = controllers.is_empty();
        if !of_version_2 && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        for (root, place) in mounts.lines().filter_map(|line| mount(line, of_version_2)) {
            let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or("/");
            // What begins with .. lies outside of what is seen here.
            let below = if below.starts_with("/..") { "" } else { below.trim_start_matches('/') };
            let place = Path::new(&place);
            let inner = if below.is_empty() { place.to_owned() } else { place.join(below) };
            let all = inner.ancestors().take_while(|folder| folder.starts_with(place));
            found.extend(all.map(Path::to_owned));
        }
    }
    found
}

/// What of a hierarchy is mounted where, if the line is that of one that accounts for processors.
fn mount(line: &str, of_version_2: bool) -> Option<(String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?);
    let fits = match of_version_2 {
        true => kind == "cgroup2",
        false => kind == "cgroup" && options.split(',').any(|name| name == "cpu"),
    };
    let mut before = before.split(' ').skip(3);
    fits.then_some((before.next()?.to_owned(), before.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn less_than_a_tick_is_seen() {
        let seen = (0..20).filter(|_| {
            let before = thread_cpu_ns();
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(300) {
                std::hint::spin_loop();
            }
            let after = thread_cpu_ns();
            after[0] + after[1] > before[0] + before[1]
        });
        assert_eq!(seen.count(), 20);
    }

    #[test]
    fn a_thread_that_runs_knows_how_long_it_waited() {
        let before = thread_waiting_ns();
        std::thread::yield_now();
        assert!(before.is_none() || thread_waiting_ns() >= before);
    }

    #[test]
    fn groups_of_both_versions_are_found_with_those_above_them() {
        let names = |found: Vec<PathBuf>| -> Vec<String> {
            found.iter().map(|folder| folder.display().to_string()).collect()
        };
        let second = "26 25 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            names(folders("0::/user.slice/run.scope\n", second)),
            ["/sys/fs/cgroup/user.slice/run.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]
        );
        assert_eq!(names(folders("0::/../../other\n", second)), ["/sys/fs/cgroup"]);
        let first = "32 31 0:29 /docker/a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                     33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let groups = "3:memory:/x\n1:cpu,cpuacct:/docker/a/b\n0::/\n";
        assert_eq!(names(folders(groups, first)), ["/sys/fs/cgroup/cpu/b", "/sys/fs/cgroup/cpu"]);
        assert_eq!(folders("nonsense", "nonsense"), Vec::<PathBuf>::new());
    }

    #[test]
    fn both_versions_account_for_quotas() {
        assert_eq!(throttled_of("usage_usec 5\nnr_throttled 3\nthrottled_usec 1500\n"), Some(1_500_000));
        assert_eq!(throttled_of("nr_periods 0\nthrottled_time 330527759\n"), Some(330_527_759));
        assert_eq!(throttled_of("usage_usec 5\n"), None);
    }
}
