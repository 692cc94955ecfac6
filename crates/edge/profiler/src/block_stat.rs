//! Block devices: what they are, and their statistics.

use std::collections::BTreeMap;
use std::fs;

/// Counters of a whole disk since boot (Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DiskCounters {
    pub reads: u64,
    pub read_bytes: u64,
    pub read_ms: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub write_ms: u64,
}

impl DiskCounters {
    /// What came in between.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            read_ms: self.read_ms.saturating_sub(earlier.read_ms),
            writes: self.writes.saturating_sub(earlier.writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            write_ms: self.write_ms.saturating_sub(earlier.write_ms),
        }
    }

    /// All of one and all of another.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            read_ms: self.read_ms + other.read_ms,
            writes: self.writes + other.writes,
            written_bytes: self.written_bytes + other.written_bytes,
            write_ms: self.write_ms + other.write_ms,
        }
    }
}

/// Every disk that lies on no other, by name.
pub(crate) fn disks() -> BTreeMap<String, DiskCounters> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stacked =
            fs::read_dir(entry.path().join("slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
        // What lies in memory, and what has a file on another disk, is no storage of its own.
        let borrowed = ["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind));
        if stacked || borrowed {
            continue;
        }
        if let Some(counters) =
            fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parse_stat)
        {
            found.insert(name, counters);
        }
    }
    found
}

fn parse_stat(text: &str) -> Option<DiskCounters> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let bytes = |sectors: u64| sectors.saturating_mul(crate::event::SECTOR_BYTES);
    match fields[..] {
        [reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, ..] => Some(DiskCounters {
            reads,
            read_bytes: bytes(read_sectors),
            read_ms,
            writes,
            written_bytes: bytes(written_sectors),
            write_ms,
        }),
        _ => None,
    }
}

/// What a device is, by its numbers.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    known: BTreeMap<(u32, u32), Option<(u32, u32)>>,
}

impl Devices {
    /// The whole disk of a device; none where it lies on others.
    pub(crate) fn disk(&mut self, device: (u32, u32)) -> Option<(u32, u32)> {
        *self.known.entry(device).or_insert_with(|| {
            let path = format!("/sys/dev/block/{}:{}", device.0, device.1);
            let stacked =
                fs::read_dir(format!("{path}/slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
            if stacked {
                return None;
            }
            if fs::metadata(format!("{path}/partition")).is_err() {
                return Some(device);
            }
            let whole = fs::read_to_string(format!("{path}/../dev")).ok()?;
            let (major, minor) = whole.trim().split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        })
    }
}

/// A disk's name.
pub(crate) fn name((major, minor): (u32, u32)) -> String {
    fs::read_link(format!("/sys/dev/block/{major}:{minor}"))
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_counters_are_understood() {
        let text = "69806077 11099029 1276751418 18819864 35861558 17947925 1177607806  5161181        0  1949204 24057295";
        let counters = parse_stat(text).unwrap();
        assert_eq!((counters.reads, counters.writes, counters.write_ms), (69_806_077, 35_861_558, 5_161_181));
        assert_eq!(counters.read_bytes, 1_276_751_418 * 512);
        assert_eq!(parse_stat("1 2 3"), None);
        assert_eq!(counters.since(counters), DiskCounters::default());
    }

    #[test]
    fn this_machine_s_disks_are_found_and_their_partitions_known() {
        let disks = disks();
        assert!(!disks.is_empty());
        println!("{disks:?}");
        let mut devices = Devices::default();
        for partition in fs::read_dir("/sys/class/block").unwrap().flatten() {
            let dev = fs::read_to_string(partition.path().join("dev")).unwrap();
            let (major, minor) = dev.trim().split_once(':').unwrap();
            let numbers = (major.parse().unwrap(), minor.parse().unwrap());
            if let Some(disk) = devices.disk(numbers) {
                assert!(!name(disk).is_empty());
            }
        }
    }
}
