//! How evenly something is shared, also over time by machines that started at one moment.

use virtbench_record::Interval;

/// Jain's index of fairness (Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and
/// Discrimination", DEC TR-301, 1984): 1 where all have the same, 1/n where one has all. Nothing where
/// nobody has anything, or a share is negative or no number.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.iter().any(|share| !share.is_finite() || *share < 0.0) {
        return None;
    }
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// What the worst has of what the best has, 0 to 1. Nothing where nobody has anything.
#[must_use]
pub fn worst_to_best(shares: &[f64]) -> Option<f64> {
    let best = shares.iter().copied().reduce(f64::max).filter(|best| *best > 0.0)?;
    Some(shares.iter().copied().fold(best, f64::min) / best)
}

/// Standard deviation of samples (n - 1); nothing from fewer than two.
#[must_use]
pub fn sample_stddev(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    Some((samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// What each machine had in each interval that all of them were measured in.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalShares {
    /// Length of an interval, in nanoseconds.
    pub step_ns: u64,
    /// Interval by interval, machine by machine: work a second, in bytes or, where none were moved, in
    /// operations.
    pub rates: Vec<Vec<f64>>,
}

/// The most intervals that are kept.
const MOST_INTERVALS: u64 = 100_000;

/// Lays series side by side; they count from the moment for which the start was agreed upon. What lies
/// in two intervals of the common grid is divided by time. Only time that all series cover is kept.
/// Nothing where there is no such time.
#[must_use]
pub fn lay_side_by_side(series: &[&[Interval]]) -> Option<IntervalShares> {
    let longest = |intervals: &&[Interval]| intervals.iter().map(|interval| interval.length_ns).max();
    let step_ns = series.iter().filter_map(longest).max().filter(|step| *step > 0)?;
    let end = |intervals: &&[Interval]| {
        intervals.last().map_or(0, |last| last.start_ns.saturating_add(last.length_ns))
    };
    let begin = |intervals: &&[Interval]| intervals.first().map_or(u64::MAX, |first| first.start_ns);
    let from = series.iter().map(begin).max()?.div_ceil(step_ns);
    let until = (series.iter().map(end).min()? / step_ns).min(from.saturating_add(MOST_INTERVALS));
    if from >= until {
        return None;
    }
    let in_bytes = series.iter().any(|intervals| intervals.iter().any(|interval| interval.bytes > 0));
    let rates: Vec<Vec<f64>> =
        series.iter().map(|intervals| on_grid(intervals, step_ns, from, until, in_bytes)).collect();
    let count = usize::try_from(until - from).ok()?;
    let turned = (0..count).map(|index| rates.iter().map(|machine| machine[index]).collect()).collect();
    Some(IntervalShares { step_ns, rates: turned })
}

/// One machine's work a second in each interval of the grid.
fn on_grid(intervals: &[Interval], step_ns: u64, from: u64, until: u64, in_bytes: bool) -> Vec<f64> {
    let mut work = vec![0.0; usize::try_from(until - from).unwrap_or(0)];
    for interval in intervals.iter().filter(|interval| interval.length_ns > 0) {
        let amount = if in_bytes { interval.bytes } else { interval.operations } as f64;
        let (begin, end) = (interval.start_ns, interval.start_ns.saturating_add(interval.length_ns));
        for cell in begin / step_ns..=end.saturating_sub(1) / step_ns {
            if !(from..until).contains(&cell) {
                continue;
            }
            let overlap = end.min((cell + 1) * step_ns) - begin.max(cell * step_ns);
            if let Some(place) = usize::try_from(cell - from).ok().and_then(|index| work.get_mut(index)) {
                *place += amount * overlap as f64 / interval.length_ns as f64;
            }
        }
    }
    work.into_iter().map(|amount| amount / (step_ns as f64 / 1e9)).collect()
}

impl IntervalShares {
    /// Jain's index of each interval; nothing where nobody did anything.
    pub fn fairness(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.rates.iter().map(|rates| jain(rates))
    }

    /// Mean of the intervals' indices and the worst of them.
    #[must_use]
    pub fn mean_and_worst(&self) -> Option<(f64, f64)> {
        let known: Vec<f64> = self.fairness().flatten().collect();
        let worst = known.iter().copied().reduce(f64::min)?;
        Some((known.iter().sum::<f64>() / known.len() as f64, worst))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_shares_have_known_fairness() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        // Jain's own example: 1 and 3 are 16/20.
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[]), jain(&[-1.0, 2.0])), (None, None, None));
        assert_eq!(worst_to_best(&[2.0, 8.0, 4.0]), Some(0.25));
        assert_eq!(worst_to_best(&[0.0]), None);
        assert_eq!(sample_stddev(&[2.0, 4.0, 6.0]), Some(2.0));
        assert_eq!(sample_stddev(&[2.0]), None);
    }

    proptest! {
        #[test]
        fn the_index_has_its_bounds_and_no_unit(
            shares in prop::collection::vec(0.0f64..1e9, 1..20), scale in 0.001f64..1000.0,
        ) {
            prop_assume!(shares.iter().any(|share| *share > 1.0));
            let index = jain(&shares).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / shares.len() as f64 - 1e-12);
            let scaled: Vec<f64> = shares.iter().map(|share| share * scale).collect();
            prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-9);
        }
    }

    fn series(length_ns: u64, work: &[u64]) -> Vec<Interval> {
        (0..)
            .zip(work)
            .map(|(index, bytes)| Interval {
                start_ns: index * length_ns,
                length_ns,
                operations: 1,
                bytes: *bytes,
                mean_latency_ns: None,
            })
            .collect()
    }

    /// [Multi-VM 2010], section 5.3: "although the bandwidth is distributed evenly on average, it is not
    /// distributed evenly during each run".
    #[test]
    fn even_means_over_uneven_intervals_are_seen() {
        let (first, second) = (series(1_000, &[10, 0, 10, 0]), series(1_000, &[0, 10, 0, 10]));
        let shares = lay_side_by_side(&[&first, &second]).unwrap();
        let total = |vm: usize| shares.rates.iter().map(|rates| rates[vm]).sum::<f64>();
        assert_eq!(total(0), total(1));
        assert_eq!(shares.mean_and_worst(), Some((0.5, 0.5)));
        let even = series(1_000, &[5, 5, 5, 5]);
        assert_eq!(lay_side_by_side(&[&even, &even]).unwrap().mean_and_worst(), Some((1.0, 1.0)));
    }

    #[test]
    fn work_keeps_its_sum_on_a_coarser_grid_and_only_common_time_counts() {
        let fine = series(500_000_000, &[4, 6, 8, 2, 9]);
        let coarse = series(1_000_000_000, &[7, 7]);
        let shares = lay_side_by_side(&[&fine, &coarse]).unwrap();
        assert_eq!((shares.step_ns, shares.rates), (1_000_000_000, vec![vec![10.0, 7.0], vec![10.0, 7.0]]));
    }

    #[test]
    fn series_that_never_meet_give_nothing() {
        assert_eq!(lay_side_by_side(&[&series(10, &[1]), &[]]), None);
        assert_eq!(lay_side_by_side(&[]), None);
    }
}
