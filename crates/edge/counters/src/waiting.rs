//! How long this thread and process had to wait for a processor.

use std::fs;
use std::path::{Path, PathBuf};

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
    use super::*;

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
