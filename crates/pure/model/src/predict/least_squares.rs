//! Least squares whose coefficients are not negative: work never takes time back.

/// Rounds of the descent.
const MOST_ROUNDS: usize = 20_000;
/// It has arrived where no coefficient moves its column by more than this.
const ARRIVED: f64 = 1e-10;

/// The `x >= 0` with the least `|A x - b|^2 + ridge |x|^2`, columns of `rows` scaled to a largest entry of one
/// beforehand. `ridge` decides between columns that the rows cannot tell apart; it must be above zero.
///
/// One coefficient after the other is set to its optimum (cyclic coordinate descent), which converges because the sum
/// is strictly convex.
#[must_use]
pub(super) fn non_negative(rows: &[Vec<f64>], targets: &[f64], ridge: f64) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    let largest = |column: usize| rows.iter().map(|row| row[column].abs()).fold(0.0, f64::max);
    let scales: Vec<f64> = (0..columns).map(largest).collect();
    let entry = |row: &[f64], column: usize| if scales[column] > 0.0 { row[column] / scales[column] } else { 0.0 };
    // A column that is zero throughout says nothing, and its coefficient stays zero.
    let squares: Vec<f64> = (0..columns)
        .map(|column| ridge + rows.iter().map(|row| entry(row, column).powi(2)).sum::<f64>())
        .collect();
    let mut x = vec![0.0; columns];
    let mut left: Vec<f64> = targets.to_vec();
    for _ in 0..MOST_ROUNDS {
        let mut moved = 0.0f64;
        for column in 0..columns {
            let pull: f64 = rows.iter().zip(&left).map(|(row, left)| entry(row, column) * left).sum();
            let wanted = ((pull - ridge * x[column]) / squares[column] + x[column]).max(0.0);
            let step = wanted - x[column];
            if step != 0.0 {
                for (row, left) in rows.iter().zip(&mut left) {
                    *left -= step * entry(row, column);
                }
                x[column] = wanted;
                moved = moved.max(step.abs());
            }
        }
        if moved < ARRIVED {
            break;
        }
    }
    x.iter().zip(&scales).map(|(x, scale)| if *scale > 0.0 { x / scale } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_made_the_targets_is_found_again() {
        let rows = [[1.0, 0.0, 2.0], [0.0, 1e6, 1.0], [3.0, 2e6, 0.0], [1.0, 1e6, 1.0]].map(|row| row.to_vec());
        let truth = [2.0, 3e-6, 5.0];
        let targets: Vec<f64> =
            rows.iter().map(|row| row.iter().zip(truth).map(|(entry, x)| entry * x).sum()).collect();
        let found = non_negative(&rows, &targets, 1e-9);
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 1e-4, "{found} {truth}");
        }
    }

    #[test]
    fn what_would_be_negative_is_zero_and_twins_share() {
        let rows = [[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]].map(|row| row.to_vec());
        let found = non_negative(&rows, &[2.0, 1.0], 1e-6);
        assert_eq!(found[2], 0.0, "{found:?}");
        assert!((found[0] - found[1]).abs() < 1e-3 && found[0] > 0.5, "{found:?}");
        assert!(non_negative(&[], &[], 0.1).is_empty());
    }

    proptest! {
        #[test]
        fn no_single_step_makes_it_better(
            rows in prop::collection::vec(prop::collection::vec(0.0f64..10.0, 3), 1..8),
            targets in prop::collection::vec(0.0f64..10.0, 8),
        ) {
            let targets = &targets[..rows.len()];
            let x = non_negative(&rows, targets, 1e-3);
            let scales: Vec<f64> = (0..3).map(|c| rows.iter().map(|row| row[c]).fold(0.0, f64::max)).collect();
            let cost = |x: &[f64]| -> f64 {
                let off = |(row, b): (&Vec<f64>, &f64)| {
                    (row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - b).powi(2)
                };
                rows.iter().zip(targets).map(off).sum::<f64>()
                    + 1e-3 * x.iter().zip(&scales).map(|(x, s)| (x * s).powi(2)).sum::<f64>()
            };
            for column in 0..3 {
                for step in [-1e-3, 1e-3] {
                    let mut other = x.clone();
                    other[column] = (other[column] + step).max(0.0);
                    prop_assert!(cost(&x) <= cost(&other) + 1e-6, "{x:?} {other:?}");
                }
            }
        }
    }
}
