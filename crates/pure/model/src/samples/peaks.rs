//! Common times among many: two of them mean that some are held back, as interrupts that are coalesced do.

/// A time that is common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// The time, in nanoseconds.
    pub at_ns: u64,
    /// The part of all times that is around it, 0 to 1.
    pub share: f64,
}

/// Two peaks are as many times apart from each other, at least.
const APART: f64 = 1.5;
/// A peak has as large a part of all times, at least.
const LEAST_SHARE: f64 = 0.05;
/// Between two peaks counts fall below this part of the lower one.
const VALLEY: f64 = 0.5;
/// Fewer times than this have a shape by chance.
const LEAST_TIMES: u64 = 1000;
/// Bins for each power of two: wide enough to hold many of a peak's times.
const BINS_PER_OCTAVE: f64 = 6.0;

/// The common times, the shortest first: several, or none where there is one hill or too few times to say. `counts` has the upper end of
/// a range in nanoseconds and how many fell into it.
#[must_use]
pub fn peaks(counts: &[(u64, u64)]) -> Vec<Peak> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    if total < LEAST_TIMES {
        return Vec::new();
    }
    let bins = smoothed(&bins(counts));
    let hills = hills(&bins);
    let peak = |hill: &Hill| Peak { at_ns: at_ns(hill.top), share: hill.mass / total as f64 };
    let found: Vec<Peak> = hills.iter().map(peak).filter(|peak| peak.share >= LEAST_SHARE).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// Counts by logarithm of the time.
fn bins(counts: &[(u64, u64)]) -> Vec<f64> {
    let mut bins = Vec::new();
    for (end, count) in counts {
        let bin = bin_of(*end);
        if bins.len() <= bin {
            bins.resize(bin + 1, 0.0);
        }
        bins[bin] += *count as f64;
    }
    bins
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of 64 bits, never negative"
)]
fn bin_of(ns: u64) -> usize {
    ((ns.max(1) as f64).log2() * BINS_PER_OCTAVE) as usize
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the middle of a bin, never negative"
)]
fn at_ns(bin: usize) -> u64 {
    ((bin as f64 + 0.5) / BINS_PER_OCTAVE).exp2() as u64
}

/// Each bin with half of its neighbours, so that a gap of one bin is no valley.
fn smoothed(bins: &[f64]) -> Vec<f64> {
    let at = |index: usize| bins.get(index).copied().unwrap_or(0.0);
    (0..=bins.len())
        .map(|index| {
            let below = index.checked_sub(1).map_or(0.0, at);
            0.25 * below + 0.5 * at(index) + 0.25 * at(index + 1)
        })
        .collect()
}

/// A hill: its highest bin, and how much lies between its valleys.
#[derive(Debug, Clone, Copy)]
struct Hill {
    top: usize,
    height: f64,
    mass: f64,
}

/// The hills from left to right. Two that no deep valley parts, or that are close, are one.
fn hills(bins: &[f64]) -> Vec<Hill> {
    let mut hills: Vec<Hill> = Vec::new();
    let mut lowest = f64::INFINITY;
    let mut open: Option<Hill> = None;
    for (index, height) in bins.iter().copied().enumerate() {
        let Some(hill) = &mut open else {
            if height > 0.0 {
                open = Some(Hill { top: index, height, mass: height });
                lowest = f64::INFINITY;
            }
            continue;
        };
        let is_apart = (index - hill.top) as f64 >= BINS_PER_OCTAVE * APART.log2();
        // The valley is behind, and counts rise to twice its depth: another hill has begun.
        if is_apart && lowest < VALLEY * hill.height && height > lowest / VALLEY && height > 0.0 {
            hills.push(*hill);
            open = Some(Hill { top: index, height, mass: height });
            lowest = f64::INFINITY;
            continue;
        }
        hill.mass += height;
        if height > hill.height {
            (hill.top, hill.height) = (index, height);
            lowest = f64::INFINITY;
        }
        lowest = lowest.min(height);
    }
    hills.extend(open);
    hills
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times around `centre`, most of them near it.
    fn around(centre: u64, count: u64) -> Vec<(u64, u64)> {
        let parts = [(90, 5), (95, 20), (100, 50), (105, 20), (110, 5)];
        parts.iter().map(|(percent, part)| (centre * percent / 100, count * part / 100)).collect()
    }

    #[test]
    fn one_hill_has_no_peaks_to_tell_apart() {
        assert!(peaks(&around(20_000, 10_000)).is_empty());
        let mut tail = around(20_000, 10_000);
        tail.extend([(30_000, 300), (45_000, 150), (70_000, 80), (150_000, 20), (2_000_000, 3)]);
        assert!(peaks(&tail).is_empty(), "{:?}", peaks(&tail));
        assert!(peaks(&[]).is_empty() && peaks(&around(20_000, 500)).is_empty());
    }

    #[test]
    fn two_hills_are_found_with_their_parts() {
        let mut counts = around(20_000, 7_000);
        counts.extend(around(200_000, 3_000));
        let [fast, slow] = peaks(&counts)[..] else { panic!("{:?}", peaks(&counts)) };
        assert!((18_000..23_000).contains(&fast.at_ns) && (180_000..230_000).contains(&slow.at_ns));
        assert!((fast.share - 0.7).abs() < 0.02 && (slow.share - 0.3).abs() < 0.02, "{fast:?} {slow:?}");
    }

    #[test]
    fn a_few_slow_times_are_no_peak() {
        let mut counts = around(20_000, 10_000);
        counts.extend(around(200_000, 200));
        assert!(peaks(&counts).is_empty(), "{:?}", peaks(&counts));
    }
}
