//! Where a series of measurements, run after run, changed its level or spread: E-Divisive (D. S. Matteson and N. A. James, "A
//! Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", Journal of the American Statistical
//! Association 109(505), 2014).
//!
//! A stretch is split where the energy distance of its two parts is largest. Whether that is more than chance is told by
//! permutations: in a series without a change any order of its values is as likely as any other. The parts are split further
//! in the same way. Nothing is assumed of the distribution, and one stray value makes no change.

use virtbench_units::Random;

/// The fewest values between two changes.
const LEAST: usize = 3;
/// Of the orders that a split is held against, how many may be as uneven before it is taken for chance.
const CHANCES: usize = 6;
/// The most values that are looked at, the latest.
pub const MOST_VALUES: usize = 200;

/// Where a series is split, and how probable that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after it.
    pub index: usize,
    /// How probable so large a difference is by chance, in a series without a change.
    pub probability: f64,
}

/// The changes in a series, in order. A series without a change has one with a probability of `level`, between 0 and 1.
/// Values that are not finite have no place in a series; of very many the latest are looked at. `seed` determines the
/// permutations.
#[must_use]
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<ChangePoint> {
    let skipped = values.len().saturating_sub(MOST_VALUES);
    let values = &values[skipped..];
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut random = Random::new(seed);
    let mut changes: Vec<ChangePoint> = Vec::new();
    let mut stretches = vec![(0, values.len())];
    while let Some((begin, end)) = stretches.pop() {
        let Some((at, probability)) = split(&values[begin..end], level, &mut random) else { continue };
        changes.push(ChangePoint { index: skipped + begin + at, probability });
        stretches.extend([(begin, begin + at), (begin + at, end)]);
    }
    changes.sort_by_key(|change| change.index);
    changes
}

/// Where a stretch is split, and how probable that is by chance; nothing where it is not improbable enough.
fn split(values: &[f64], level: f64, random: &mut Random) -> Option<(usize, f64)> {
    let (at, largest) = best_split(values)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero, and saturates")]
    let orders = (CHANCES as f64 / level).ceil() as usize;
    let mut shuffled = values.to_vec();
    // The order that was measured is one of them.
    let mut as_uneven = 1;
    for _ in 1..orders {
        shuffle(&mut shuffled, random);
        as_uneven += usize::from(best_split(&shuffled).is_some_and(|(_, energy)| energy >= largest));
        if as_uneven > CHANCES {
            return None;
        }
    }
    Some((at, as_uneven as f64 / orders as f64))
}

/// The split with the largest energy distance, and that distance; nothing of too few values, or of values that are all the same.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let number = values.len();
    if number < 2 * LEAST {
        return None;
    }
    let distance = |one: usize, other: usize| (values[one] - values[other]).abs();
    // Sums of distances within all values before each index, and within all from it on.
    let mut before = vec![0.0; number + 1];
    let mut from = vec![0.0; number + 1];
    for index in 0..number {
        before[index + 1] = before[index] + (0..index).map(|other| distance(index, other)).sum::<f64>();
        let last = number - 1 - index;
        from[last] = from[last + 1] + (last + 1..number).map(|other| distance(last, other)).sum::<f64>();
    }
    let all = before[number];
    let energy = |at: usize| {
        let (left, right) = (at as f64, (number - at) as f64);
        let between = (all - before[at] - from[at]) * 2.0 / (left * right);
        let within = |sum: f64, size: f64| sum * 2.0 / (size * (size - 1.0));
        left * right / (left + right) * (between - within(before[at], left) - within(from[at], right))
    };
    let best =
        (LEAST..=number - LEAST).map(|at| (at, energy(at))).max_by(|one, other| one.1.total_cmp(&other.1));
    best.filter(|(_, energy)| *energy > 0.0)
}

fn shuffle(values: &mut [f64], random: &mut Random) {
    for index in (1..values.len()).rev() {
        #[expect(clippy::cast_possible_truncation, reason = "below the length")]
        let other = random.below(index as u64 + 1) as usize;
        values.swap(index, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use proptest::prelude::*;

    const LEVEL: f64 = 0.05;

    fn series(random: &mut Random, levels: &[(usize, f64)], spread: f64) -> Vec<f64> {
        let stretch = |(number, level): &(usize, f64)| vec![*level; *number];
        levels.iter().flat_map(stretch).map(|level| level * (spread * normal(random)).exp()).collect()
    }

    fn indices(values: &[f64]) -> Vec<usize> {
        change_points(values, LEVEL, 1).iter().map(|change| change.index).collect()
    }

    #[test]
    fn a_series_without_a_change_rarely_has_one() {
        let mut random = Random::new(77);
        for length in [8, 30, 60] {
            let trials = 1_000;
            let alarms = (0..trials).filter(|trial| {
                let values = series(&mut random, &[(length, 100.0)], 0.05);
                !change_points(&values, LEVEL, *trial).is_empty()
            });
            let share = alarms.count() as f64 / trials as f64;
            println!("false alarms in series of {length}: {:.1} %", 100.0 * share);
            assert!((0.02..=0.07).contains(&share), "{length}: {share}");
        }
    }

    #[test]
    fn a_change_as_large_as_three_spreads_is_nearly_always_found() {
        let mut random = Random::new(78);
        let found = (0..1_000).filter(|seed| {
            let values = series(&mut random, &[(10, 100.0), (6, 86.0)], 0.05);
            change_points(&values, LEVEL, *seed).iter().any(|change| change.index.abs_diff(10) <= 1)
        });
        let share = found.count() as f64 / 1_000.0;
        println!("changes found: {:.1} %", 100.0 * share);
        assert!(share >= 0.85, "{share}");
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let mut random = Random::new(5);
        let values = series(&mut random, &[(20, 100.0), (15, 80.0), (15, 120.0)], 0.03);
        let found = indices(&values);
        let is_found = |place: usize| found.iter().any(|index| index.abs_diff(place) <= 1);
        // Each of the three stretches may have a false one.
        assert!(found.len() <= 3 && is_found(20) && is_found(35), "{found:?}");
        assert!(change_points(&values, LEVEL, 1).iter().all(|change| change.probability <= LEVEL));
    }

    #[test]
    fn neither_one_stray_value_nor_equal_values_are_a_change() {
        let mut values = series(&mut Random::new(6), &[(30, 100.0)], 0.01);
        values[12] = 20.0;
        assert!(indices(&values).is_empty());
        assert!(indices(&[7.0; 20]).is_empty());
    }

    #[test]
    fn of_very_many_values_the_latest_are_looked_at() {
        let mut random = Random::new(8);
        let values = series(&mut random, &[(100, 50.0), (MOST_VALUES, 100.0)], 0.01);
        assert!(indices(&values).is_empty());
        let values = series(&mut random, &[(MOST_VALUES, 50.0), (MOST_VALUES / 2, 100.0)], 0.01);
        assert_eq!(indices(&values), [MOST_VALUES]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_series_panics(values in prop::collection::vec(prop::num::f64::ANY, 0..24), seed: u64) {
            let found = change_points(&values, LEVEL, seed);
            prop_assert!(found.iter().all(|change| (LEAST..values.len()).contains(&change.index)));
        }
    }
}
