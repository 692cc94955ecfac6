//! Where a guest's memory lies: User Mode Linux maps a file, which is memory only on tmpfs.

use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statfs, statvfs};

/// tmpfs, as `statfs` numbers it.
const TMPFS: u32 = 0x0102_1994;
/// Where a tmpfs may be that is everybody's.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];

/// A folder on tmpfs with room for so many bytes, from which programs may be run.
///
/// # Errors
/// There is none; why not, of each place.
pub(super) fn memory_folder(bytes: u64) -> Result<PathBuf, String> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = PLACES.map(PathBuf::from).into_iter().chain(runtime);
    let mut whys = Vec::new();
    for place in places {
        match unfit(&place, bytes) {
            None => return Ok(place),
            Some(why) => whys.push(format!("{} {why}", place.display())),
        }
    }
    Err(format!(
        "a guest's memory has to lie on tmpfs, without noexec and with {} MiB left: {}",
        bytes >> 20,
        whys.join(", ")
    ))
}

/// Why a guest's memory cannot lie there.
fn unfit(place: &Path, bytes: u64) -> Option<String> {
    let Ok(kind) = statfs(place) else { return Some("is not there".into()) };
    if u32::try_from(kind.f_type) != Ok(TMPFS) {
        return Some("is not tmpfs".into());
    }
    let Ok(facts) = statvfs(place) else { return Some("cannot be looked at".into()) };
    if facts.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Some("is mounted noexec".into());
    }
    let left = facts.f_bavail.saturating_mul(facts.f_frsize);
    (left < bytes).then(|| format!("has {} MiB left", left >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_each_place_is_said() {
        assert_eq!(unfit(Path::new("/nowhere"), 1).as_deref(), Some("is not there"));
        assert_eq!(unfit(Path::new("/proc"), 1).as_deref(), Some("is not tmpfs"));
        let error = memory_folder(u64::MAX).unwrap_err();
        assert!(error.contains("has to lie on tmpfs") && error.contains("/dev/shm"), "{error}");
    }
}
