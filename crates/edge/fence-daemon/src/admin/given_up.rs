//! What is lost of a cache, by name.

use std::collections::BTreeMap;
use std::fmt;

use virtbench_fence::cache::BLOCK_BYTES;

/// Why a block is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It does not have the sum that it was written with.
    Damaged,
    /// The device does not give it.
    Unreadable,
}

/// A range of a disk that goes on with what the disk had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The disk's name.
    pub disk: String,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub len_bytes: u64,
    /// What the cache has in its place.
    pub why: Why,
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk, offset_bytes, len_bytes, why } = self;
        let end = offset_bytes + len_bytes - 1;
        let why = match why {
            Why::Damaged => "damaged in the cache",
            Why::Unreadable => "unreadable in the cache",
        };
        write!(f, "disk {disk}: bytes {offset_bytes} to {end}: {why}: the disk has what it had before")
    }
}

/// Blocks by disk and place, in ranges.
#[derive(Debug, Default)]
pub(super) struct Lost {
    blocks: BTreeMap<(String, u64), Why>,
}

impl Lost {
    pub(super) fn add(&mut self, disk: &str, offset_bytes: u64, why: Why) {
        self.blocks.insert((disk.to_owned(), offset_bytes), why);
    }

    pub(super) fn ranges(self) -> Vec<GivenUp> {
        let mut ranges: Vec<GivenUp> = Vec::new();
        for ((disk, offset_bytes), why) in self.blocks {
            match ranges.last_mut() {
                Some(last)
                    if last.disk == disk
                        && last.why == why
                        && last.offset_bytes + last.len_bytes == offset_bytes =>
                {
                    last.len_bytes += BLOCK_BYTES;
                }
                _ => ranges.push(GivenUp { disk, offset_bytes, len_bytes: BLOCK_BYTES, why }),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let mut lost = Lost::default();
        for (disk, block, why) in [
            ("b", 1, Why::Damaged),
            ("a", 3, Why::Damaged),
            ("a", 2, Why::Damaged),
            ("a", 4, Why::Unreadable),
        ] {
            lost.add(disk, block * BLOCK_BYTES, why);
        }
        let ranges = lost.ranges();
        let found: Vec<_> =
            ranges.iter().map(|range| (range.disk.as_str(), range.offset_bytes, range.len_bytes)).collect();
        assert_eq!(found, [("a", 8192, 8192), ("a", 16384, 4096), ("b", 4096, 4096)]);
        assert!(ranges[0].to_string().starts_with("disk a: bytes 8192 to 16383: damaged"), "{}", ranges[0]);
    }
}
