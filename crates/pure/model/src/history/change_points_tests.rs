#![allow(clippy::unwrap_used)]

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
    assert!(indices(&[524_488.7_f64.ln(); 12]).is_empty());
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

#[test]
fn few_different_values_are_no_change() {
    let mut random = Random::new(10);
    let trials = 500;
    let alarms = (0..trials).filter(|trial| {
        let values: Vec<f64> = (0..30).map(|_| random.below(2) as f64 + 3.0).collect();
        !change_points(&values, LEVEL, *trial).is_empty()
    });
    let share = alarms.count() as f64 / trials as f64;
    println!("false alarms in series of two values: {:.1} %", 100.0 * share);
    assert!(share <= 0.07, "{share}");
}

#[test]
fn the_energy_is_that_of_all_pairs() {
    let mut random = Random::new(11);
    let values = series(&mut random, &[(9, 1.0), (6, 3.0)], 0.5);
    let distance = |one: &[f64], other: &[f64]| {
        let pairs = one.iter().flat_map(|one| other.iter().map(move |other| (one - other).abs()));
        pairs.sum::<f64>()
    };
    let energy = |at: usize| {
        let (left, right) = values.split_at(at);
        let (m, n) = (left.len() as f64, right.len() as f64);
        let within = |side: &[f64], size: f64| distance(side, side) / (size * (size - 1.0));
        m * n / (m + n) * (2.0 / (m * n) * distance(left, right) - within(left, m) - within(right, n))
    };
    let best = (LEAST..=values.len() - LEAST).max_by(|one, other| energy(*one).total_cmp(&energy(*other)));
    let (at, largest) = Stretch::new(&values).best_split().unwrap();
    assert!(Some(at) == best && (largest - energy(at)).abs() < 1e-9, "{at} {largest}");
}

/// What [`SURE`] takes for granted.
#[test]
fn no_order_of_a_series_without_a_change_dwarfs_the_others() {
    let mut random = Random::new(15);
    for length in [12, 40, 200] {
        let mut stretch = Stretch::new(&series(&mut random, &[(length, 100.0)], 0.05));
        let mut energies = || {
            (0..SURE.0)
                .map(|_| {
                    shuffle(&mut stretch.order, &mut random);
                    stretch.best_split().map_or(0.0, |(_, energy)| energy)
                })
                .fold(0.0, f64::max)
        };
        let most = energies();
        let beyond = (0..20).map(|_| energies()).fold(0.0, f64::max) / most;
        println!(
            "{length} values: the most uneven of {} orders is {beyond:.2} times that of {}",
            20 * SURE.0,
            SURE.0
        );
        assert!(beyond < 0.7 * SURE.1, "{length}: {beyond}");
    }
}
