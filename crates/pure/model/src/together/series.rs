//! Series of machines that started at one moment, laid side by side on the host's time.

use virtbench_record::Interval;

use super::fairness::jain;

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
    use super::*;

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
