//! What users draw: each stream is determined by the load's seed and the user's number.

use virtbench_units::Random;

/// Streams of a user: each purpose has its own, so that what is asked for does not depend on when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// What comes next.
    Choice = 1,
    /// How long the user thinks.
    Think = 2,
}

/// The stream of user number `user`.
pub(crate) fn stream(seed: u64, user: u32, stream: Stream) -> Random {
    let place = (u64::from(user) << 8) + stream as u64;
    let mut random = Random::new(seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let own = random.next_u64();
    Random::new(own)
}

/// A time from an exponential distribution, in nanoseconds; at most forty times its mean.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn exponential_ns(random: &mut Random, mean_ns: u64) -> u64 {
    // 1 - unit() lies in (0, 1], so the logarithm is finite.
    (-(1.0 - random.unit()).ln() * mean_ns as f64) as u64
}

/// Choices by weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weighted {
    /// The sum of the weights up to each one.
    sums: Vec<u64>,
}

impl Weighted {
    /// Choices of these weights.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let mut sum = 0;
        let sums = weights.into_iter().map(|weight| {
            sum += u64::from(weight);
            sum
        });
        Self { sums: sums.collect() }
    }

    /// The number of the one that is drawn.
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        let drawn = random.below(self.sums.last().copied().unwrap_or(1));
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_keep_their_weights() {
        let (weighted, mut random) = (Weighted::new([9, 0, 1]), stream(1, 0, Stream::Choice));
        let mut counts = [0_u32; 3];
        (0..100_000).for_each(|_| counts[weighted.choose(&mut random)] += 1);
        assert!(counts[1] == 0 && (89_500..90_500).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn think_times_are_exponential_and_those_of_each_user_differ() {
        let mut random = stream(1, 3, Stream::Think);
        let drawn: Vec<f64> =
            (0..100_000).map(|_| exponential_ns(&mut random, 1_000_000) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let below = drawn.iter().filter(|one| **one < 1.0).count() as f64 / drawn.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (below - 0.632).abs() < 0.01, "{mean} {below}");
        let first = |seed, user, purpose| stream(seed, user, purpose).next_u64();
        assert_eq!(first(1, 3, Stream::Think), first(1, 3, Stream::Think));
        let others = [first(2, 3, Stream::Think), first(1, 4, Stream::Think), first(1, 3, Stream::Choice)];
        assert!(!others.contains(&first(1, 3, Stream::Think)));
    }
}
