//! What disks do, and how long programs stand still for them, by the kernel's accounts.

use std::fs;
use std::path::Path;

use virtbench_record::{DiskCounts, IoStalls};

/// What the kernel counts a disk's bytes in.
const SECTOR_BYTES: u64 = 512;
/// Unit of the times there, in nanoseconds.
const MILLISECOND_NS: u64 = 1_000_000;

/// The disk under a folder, by its name in `/sys/block`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk(String);

impl Disk {
    /// The whole disk that a file or folder lies on; nothing where its file system has no disk of its own, as those in memory, of a network,
    /// or of several disks.
    #[cfg(unix)]
    #[must_use]
    pub fn under(path: &Path) -> Option<Self> {
        let device = std::os::unix::fs::MetadataExt::dev(&fs::metadata(path).ok()?);
        let numbers = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let device = fs::canonicalize(Path::new("/sys/dev/block").join(numbers)).ok()?;
        let whole = if device.join("partition").exists() { device.parent()? } else { &device };
        Some(Self(whole.file_name()?.to_str()?.to_owned()))
    }

    /// Nothing: the system does not say.
    #[cfg(windows)]
    #[must_use]
    pub fn under(_: &Path) -> Option<Self> {
        None
    }
}

/// What a disk did since the machine's start (the kernel's iostats.rst), or all whole disks, of which one that is in a file on another is counted
/// on both; nothing where the kernel does not say.
pub(crate) fn disk_counts(of: Option<&Disk>) -> Option<DiskCounts> {
    let stats = fs::read_to_string("/proc/diskstats").ok()?;
    let of_line = |line: &str| -> Option<DiskCounts> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = *fields.get(2)?;
        let counts = match of {
            Some(Disk(disk)) => disk == name,
            None => Path::new("/sys/block").join(name).exists(),
        };
        // Older kernels have fewer fields.
        let field = |place: usize| fields.get(place).and_then(|field| field.parse().ok()).unwrap_or(0);
        counts.then(|| DiskCounts {
            reads: field(3),
            writes: field(7),
            flushes: field(18),
            read_bytes: field(5) * SECTOR_BYTES,
            written_bytes: field(9) * SECTOR_BYTES,
            time_ns: (field(6) + field(10) + field(19)) * MILLISECOND_NS,
        })
    };
    Some(stats.lines().filter_map(of_line).fold(DiskCounts::default(), |all, one| all.and(&one)))
}

/// How long programs stood still for I/O since the machine's start; nothing where its kernel does not keep account of that.
pub(crate) fn io_stalls() -> Option<IoStalls> {
    stalls_in(&fs::read_to_string("/proc/pressure/io").ok()?)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, and the same of `full`; totals are in microseconds.
fn stalls_in(text: &str) -> Option<IoStalls> {
    let total_ns = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.rsplit_once("total=")?.1.trim().parse::<u64>().ok()?.checked_mul(1000)
    };
    Some(IoStalls { some_ns: total_ns("some ")?, full_ns: total_ns("full ")? })
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_disks_do_is_counted() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let disk = Disk::under(file.path());
        println!("{disk:?}");
        let of = [None, disk.as_ref()];
        let before = of.map(|of| disk_counts(of).unwrap());
        file.as_file().write_all(&[1; 8192]).unwrap();
        file.as_file().sync_all().unwrap();
        for (of, before) in of.into_iter().zip(before) {
            let seen = disk_counts(of).unwrap().since(&before);
            assert!(seen.operations() >= 1 && seen.written_bytes >= 8192, "{of:?}: {seen:?}");
        }
        let other = Disk("no-such-disk".into());
        assert_eq!(disk_counts(Some(&other)), Some(DiskCounts::default()));
    }

    #[test]
    fn what_lies_on_no_disk_has_none() {
        assert_eq!(Disk::under(Path::new("/proc/self")), None);
        assert_eq!(Disk::under(Path::new("/none")), None);
    }

    #[test]
    fn the_kernel_s_account_of_stalls_is_read() {
        let text = "some avg10=0.00 avg60=0.02 avg300=0.00 total=3456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1200\n";
        assert_eq!(stalls_in(text), Some(IoStalls { some_ns: 3_456_000, full_ns: 1_200_000 }));
        // Kernels before 5.2 and some containers have neither line.
        assert_eq!(stalls_in(""), None);
        assert_eq!(stalls_in("some avg10=0.00 total=5\n"), None);
    }
}
