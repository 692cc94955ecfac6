//! How long requests took, in ranges that grow with them.

use std::collections::BTreeMap;

/// Ranges between a power of two and the next: each is at most 1/32 of its value wide.
const PARTS: u64 = 32;

/// Times in nanoseconds, counted by range.
#[derive(Debug, Default)]
pub(super) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    pub(super) fn add(&mut self, ns: u64) {
        *self.0.entry(upper_end(ns)).or_default() += 1;
    }

    /// The upper end of each range that holds something, and how many.
    pub(super) fn into_counts(self) -> Vec<(u64, u64)> {
        self.0.into_iter().collect()
    }
}

/// The upper end of the range of a time.
fn upper_end(ns: u64) -> u64 {
    let power = 1_u64 << ns.max(1).ilog2();
    let width = (power / PARTS).max(1);
    (ns / width).saturating_add(1).saturating_mul(width) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_is_in_it_and_is_narrow() {
        for ns in [0, 1, 31, 32, 33, 63, 64, 1_000, 123_456_789, u64::MAX / 2] {
            let end = upper_end(ns);
            assert!(end >= ns && end - ns <= ns / PARTS, "{ns}: {end}");
            assert_eq!(upper_end(end), end, "the end is in its own range");
        }
        let mut all = Latencies::default();
        for ns in [100_000, 100_001, 5_000] {
            all.add(ns);
        }
        assert_eq!(all.into_counts().iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
