//! A percentile with its interval, from order statistics: no distribution is assumed.

use statrs::distribution::{Binomial, DiscreteCDF};
use virtbench_record::DesktopPercentile;

use crate::interval::CONFIDENCE;

/// The percentile `share` of samples; none of none. The interval's ends are samples between which it lies with the usual
/// confidence, if samples are independent; the upper end is unknown where samples are too few.
pub(crate) fn percentile(samples: &[u64], share: f64) -> Option<DesktopPercentile> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    let at = |rank: usize| sorted.get(rank.clamp(1, count.max(1)) - 1).copied();
    let rank = (0..=count).find(|rank| *rank as f64 >= share * count as f64 - 1e-9).unwrap_or(count);
    let below = Binomial::new(share, count as u64).ok()?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = (1..=count).take_while(|rank| below.cdf(*rank as u64 - 1) <= tail).last().unwrap_or(1);
    let high = (1..=count).find(|rank| below.cdf(*rank as u64 - 1) >= 1.0 - tail);
    Some(DesktopPercentile {
        operations: count as u64,
        ns: at(rank)?,
        low_ns: at(low)?,
        high_ns: high.and_then(at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_order_statistics() {
        assert_eq!(percentile(&[], 0.95), None);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let found = percentile(&hundred, 0.95).unwrap();
        // Conover, Practical Nonparametric Statistics, section 3.2: ranks by the binomial distribution.
        assert_eq!((found.operations, found.ns, found.low_ns, found.high_ns), (100, 95, 90, Some(100)));
        let few = percentile(&[5, 6, 7], 0.95).unwrap();
        assert_eq!((few.ns, few.low_ns, few.high_ns), (7, 6, None));
    }
}
