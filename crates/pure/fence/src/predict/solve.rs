//! Weighted least squares in few unknowns.

/// The coefficients c that minimise `sum w (y - x.c)^2`, or `None` if the rows do not determine them.
pub(super) fn weighted_least_squares(rows: &[Vec<f64>], y: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let n = rows.first()?.len();
    let mut system = vec![vec![0.0; n + 1]; n];
    for ((row, &y), &w) in rows.iter().zip(y).zip(weights) {
        for i in 0..n {
            if row[i] != 0.0 {
                for j in 0..n {
                    system[i][j] += w * row[i] * row[j];
                }
                system[i][n] += w * row[i] * y;
            }
        }
    }
    eliminate(system)
}

/// Gaussian elimination with partial pivoting of `[A | b]`.
fn eliminate(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = system.len();
    let scale = (0..n).map(|i| system[i][i].abs()).fold(0.0, f64::max);
    for column in 0..n {
        let pivot =
            (column..n).max_by(|&a, &b| system[a][column].abs().total_cmp(&system[b][column].abs()))?;
        if system[pivot][column].abs() <= scale * 1e-12 {
            return None;
        }
        system.swap(column, pivot);
        let (above, below) = system.split_at_mut(column + 1);
        let pivot_row = &above[column];
        for row in below {
            let factor = row[column] / pivot_row[column];
            for (value, pivot) in row.iter_mut().zip(pivot_row).skip(column) {
                *value -= factor * pivot;
            }
        }
    }
    let mut solution = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| system[i][j] * solution[j]).sum();
        solution[i] = (system[i][n] - known) / system[i][i];
    }
    Some(solution)
}
