//! A distribution of sizes, short enough to be read.

use std::collections::BTreeMap;

use virtbench_record::{MAX_SIZES, SizeShare};

/// Counts by size become shares: each size by itself where there are few, else those of the same power
/// of two together, by their mean.
pub(crate) fn shares(counts: &BTreeMap<u64, f64>) -> Vec<SizeShare> {
    let all: f64 = counts.values().sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let share = |size_bytes: f64, count: f64| SizeShare { size_bytes, share_percent: 100.0 * count / all };
    if counts.len() <= MAX_SIZES / 2 {
        return counts.iter().map(|(size, count)| share(*size as f64, *count)).collect();
    }
    let mut groups: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (size, count) in counts {
        // Thirty-one powers of two, from 512 bytes to half a tebibyte: never more than can be kept.
        let power = size.max(&512).ilog2().min(39);
        let (bytes, operations) = groups.entry(power).or_default();
        *bytes += *size as f64 * count;
        *operations += count;
    }
    groups.values().map(|(bytes, operations)| share(bytes / operations, *operations)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_make_a_whole_and_keep_the_mean(counts in prop::collection::btree_map(1u64..1 << 45, 1.0f64..1e6, 1..200)) {
            let shares = shares(&counts);
            prop_assert!(shares.len() <= MAX_SIZES);
            let sum: f64 = shares.iter().map(|share| share.share_percent).sum();
            prop_assert!((sum - 100.0).abs() < 1e-6);
            let mean: f64 = shares.iter().map(|share| share.size_bytes * share.share_percent / 100.0).sum();
            let all: f64 = counts.values().sum();
            let truth: f64 = counts.iter().map(|(size, count)| *size as f64 * count).sum::<f64>() / all;
            prop_assert!((mean / truth - 1.0).abs() < 1e-6);
        }
    }
}
