//! Whether the newest runs are worse than those before them, told run by run.
//!
//! E-Divisive finds a change once several runs lie on both sides of it, by which time it is old news. Here the mean of the newest
//! one, two, three, ... runs is held against the runs before them: a step is seen by the first run after it if it is large for the
//! spread between runs, and by a few of them if it is small. It is Student's test of logarithms, with the margin as what may differ;
//! each look at a history has a share of what may be false, and each number of newest runs has an equal part of that.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use virtbench_record::Better;

use crate::pairwise::Margin;
use crate::quantity::is_worst;

/// How many of the newest runs are taken together.
const TAILS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// The fewest runs before them.
pub(super) const LEAST_BEFORE: usize = 3;
/// The least standard deviation that runs are taken to have, as a logarithm: some happen to be alike.
const LEAST_SPREAD: f64 = 0.002;
/// That of a rounded whole number, as a share of one.
const ROUNDED: f64 = 0.29;

/// The newest runs, found worse than those before them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Newest {
    /// How many runs.
    pub runs: usize,
    /// Geometric mean of the runs before them.
    pub before: f64,
    /// Geometric mean of these; zero, or without end, where one of them completed nothing.
    pub after: f64,
    /// How probable so large a difference is by chance.
    pub probability: f64,
}

/// What is found of these values, in the order of time, whose level and spread have not changed before. A history whose runs do not differ
/// has one found with a probability of at most `level`.
pub(super) fn newest(values: &[f64], better: Better, margin: Margin, level: f64) -> Option<Newest> {
    if better == Better::Neither {
        return None;
    }
    let idle = values.iter().rev().take_while(|value| is_worst(**value, better)).count();
    if idle > 0 {
        return stopped(values, idle, better);
    }
    // One that completed nothing is not an ordinary run: it makes no spread.
    let alive: Vec<f64> = values.iter().copied().filter(|value| !is_worst(*value, better)).collect();
    let sign = if better == Better::Lower { -1.0 } else { 1.0 };
    let worths: Vec<f64> = alive.iter().map(|value| sign * value.ln()).collect();
    if !worths.iter().all(|worth| worth.is_finite()) {
        return None;
    }
    let spread = least_spread(&alive);
    let tails = || TAILS.into_iter().filter(|tail| worths.len() >= LEAST_BEFORE + tail);
    let found = tails().filter_map(|tail| {
        let (before, after) = worths.split_at(worths.len() - tail);
        let probability = chance(before, after, spread, margin)?;
        Some((probability, tail))
    });
    let (probability, runs) = found.min_by(|one, other| one.0.total_cmp(&other.0))?;
    if probability > level / tails().count() as f64 {
        return None;
    }
    let (before, after) = worths.split_at(worths.len() - runs);
    let value = |worths: &[f64]| (sign * mean(worths)).exp();
    Some(Newest { runs, before: value(before), after: value(after), probability })
}

/// Newest runs that completed nothing, where all before them did. Nothing is left to chance there.
fn stopped(values: &[f64], idle: usize, better: Better) -> Option<Newest> {
    let before = &values[..values.len() - idle];
    if before.is_empty() || before.iter().any(|value| is_worst(*value, better)) {
        return None;
    }
    let worths: Vec<f64> = before.iter().map(|value| value.ln()).collect();
    Some(Newest {
        runs: idle,
        before: mean(&worths).exp(),
        after: values[values.len() - 1],
        probability: 0.0,
    })
}

/// How probable it is that runs which are worse by the margin at most come out as much worse.
fn chance(before: &[f64], after: &[f64], least_spread: f64, margin: Margin) -> Option<f64> {
    let number = before.len() as f64;
    let middle = mean(before);
    let squares = before.iter().map(|worth| (worth - middle).powi(2)).sum::<f64>();
    let spread = (squares / (number - 1.0)).sqrt().max(least_spread);
    let error = spread * (1.0 / number + 1.0 / after.len() as f64).sqrt();
    let beyond = middle + margin.span().low.ln() - mean(after);
    Some(StudentsT::new(0.0, 1.0, number - 1.0).ok()?.sf(beyond / error))
}

/// Whole numbers, such as those of tiles, hide a spread of less than one.
fn least_spread(values: &[f64]) -> f64 {
    let is_whole = values.iter().all(|value| value.fract() == 0.0);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
    if is_whole { LEAST_SPREAD.max(ROUNDED / least) } else { LEAST_SPREAD }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use virtbench_units::Random;

    const LEVEL: f64 = 0.01 / 3.0;

    fn found(values: &[f64]) -> Option<Newest> {
        newest(values, Better::Higher, Margin::default(), LEVEL)
    }

    #[test]
    fn a_tenth_is_found_by_the_first_run_that_has_a_history_of_three() {
        let one = found(&[100.0, 101.0, 99.0, 10.0]).unwrap();
        assert!((one.before - 100.0).abs() < 0.1 && one.runs == 1 && one.probability < 1e-3, "{one:?}");
        let slower = newest(&[1.0, 1.01, 0.99, 10.0], Better::Lower, Margin::default(), LEVEL).unwrap();
        assert!((slower.after - 10.0).abs() < 1e-9, "{slower:?}");
        assert_eq!(found(&[100.0, 101.0, 10.0]), None);
        assert_eq!(found(&[100.0, 101.0, 99.0, 1000.0]), None, "better");
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn what_is_within_the_margin_is_not_worse_however_steady() {
        assert_eq!(found(&[100.0, 100.0, 100.0, 100.0, 96.0, 96.0, 96.0]), None);
        assert!(found(&[100.0, 100.0, 100.0, 100.0, 90.0]).is_some());
    }

    #[test]
    fn a_run_that_completed_nothing_is_worse_than_any_that_did() {
        let idle = found(&[5.0, 0.0]).unwrap();
        assert!(idle.runs == 1 && idle.after == 0.0 && (idle.before - 5.0).abs() < 1e-9, "{idle:?}");
        assert_eq!(found(&[5.0, 4.0, 6.0, 0.0, 0.0]).unwrap().runs, 2);
        let endless = newest(&[5.0, 6.0, f64::INFINITY], Better::Lower, Margin::default(), LEVEL);
        assert!(endless.unwrap().after.is_infinite());
        assert_eq!(found(&[5.0, 0.0, 6.0, 0.0]), None, "it does so now and then");
        assert_eq!(found(&[0.0, 0.0]), None);
    }

    #[test]
    fn whole_numbers_vary_by_one_without_a_reason() {
        assert_eq!(found(&[3.0, 3.0, 3.0, 3.0, 2.0]), None);
        assert!(found(&[30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 15.0]).is_some());
    }

    #[test]
    fn a_history_without_a_change_rarely_has_one_found() {
        let mut random = Random::new(3);
        let narrow = Margin::new(1e-6).unwrap();
        for length in [4, 8, 20, 60] {
            let trials = 20_000;
            let alarms = (0..trials).filter(|_| {
                let values: Vec<f64> = (0..length).map(|_| (0.05 * normal(&mut random)).exp()).collect();
                newest(&values, Better::Higher, narrow, 0.01).is_some()
            });
            let share = alarms.count() as f64 / f64::from(trials);
            println!("false alarms at a look at {length} runs: {:.2} %", 100.0 * share);
            assert!(share <= 0.012, "{length}: {share}");
        }
    }
}
