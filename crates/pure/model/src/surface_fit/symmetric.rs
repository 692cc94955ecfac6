//! Symmetric matrices by their Cholesky factors (Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 4.2.1 and
//! section 3.1): the few operations that a Gaussian process needs. A matrix is kept row by row.

/// The lower triangle of a symmetric positive definite matrix's factor.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    order: usize,
    lower: Vec<f64>,
}

impl Factor {
    /// Factors the matrix of this order whose entries on and below the diagonal `entry` gives by row and column. `None` if it is
    /// not positive definite.
    pub(super) fn new(order: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let mut factor = Self { order, lower: vec![0.0; order * order] };
        for row in 0..order {
            for column in 0..=row {
                let rest = entry(row, column) - dot(factor.row(row, column), factor.row(column, column));
                factor.lower[row * order + column] = if column < row {
                    rest / factor.lower[column * order + column]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(factor)
    }

    /// The first `columns` entries of a row.
    fn row(&self, row: usize, columns: usize) -> &[f64] {
        &self.lower[row * self.order..row * self.order + columns]
    }

    fn diagonal(&self) -> impl Iterator<Item = f64> {
        self.lower.iter().step_by(self.order + 1).copied()
    }

    /// Logarithm of the matrix's determinant.
    pub(super) fn ln_determinant(&self) -> f64 {
        2.0 * self.diagonal().map(f64::ln).sum::<f64>()
    }

    /// The solution `x` of `L x = right`, where `L` is the lower triangle.
    pub(super) fn solve_lower(&self, right: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::with_capacity(self.order);
        for (row, value) in right.iter().enumerate() {
            let rest = value - dot(self.row(row, row), &solved);
            solved.push(rest / self.lower[row * self.order + row]);
        }
        solved
    }

    /// The solution `x` of `A x = right`, where `A` is the matrix.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solved = self.solve_lower(right);
        for row in (0..self.order).rev() {
            solved[row] /= self.lower[row * self.order + row];
            let (above, from) = solved.split_at_mut(row);
            for (value, entry) in above.iter_mut().zip(self.row(row, row)) {
                *value -= from[0] * entry;
            }
        }
        solved
    }

    /// The diagonal of the matrix's inverse.
    pub(super) fn inverse_diagonal(&self) -> Vec<f64> {
        let unit =
            |index| (0..self.order).map(|row| if row == index { 1.0 } else { 0.0 }).collect::<Vec<_>>();
        // Of the inverse, which is the transposed inverse triangle times the inverse triangle.
        (0..self.order)
            .map(|index| self.solve_lower(&unit(index)).iter().map(|value| value * value).sum())
            .collect()
    }
}

/// The sum of products of two rows of one length.
pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_matrix_by_hand() {
        // [[4, 2], [2, 3]] = L L' with L = [[2, 0], [1, sqrt 2]]; its inverse is [[3, -2], [-2, 4]] / 8.
        let factor = Factor::new(2, |row, column| [[4.0, 2.0], [2.0, 3.0]][row][column]).unwrap();
        assert_eq!(factor.lower, [2.0, 0.0, 1.0, 2f64.sqrt()]);
        assert!((factor.ln_determinant() - 8f64.ln()).abs() < 1e-12);
        let close = |values: Vec<f64>, wanted: [f64; 2]| {
            assert!(
                values.iter().zip(wanted).all(|(value, wanted)| (value - wanted).abs() < 1e-12),
                "{values:?}"
            );
        };
        close(factor.solve(&[8.0, 8.0]), [1.0, 2.0]);
        close(factor.inverse_diagonal(), [0.375, 0.5]);
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        assert!(Factor::new(2, |row, column| [[1.0, 2.0], [2.0, 1.0]][row][column]).is_none());
        assert!(Factor::new(1, |_, _| f64::NAN).is_none());
        assert!(Factor::new(1, |_, _| f64::INFINITY).is_none());
    }

    proptest! {
        #[test]
        fn a_solution_solves(order in 1usize..12, entries in proptest::collection::vec(-1.0..1.0, 156)) {
            // B B' + I is positive definite.
            let row = |row: usize| &entries[row * 12..row * 12 + order];
            let matrix = |a: usize, b: usize| dot(row(a), row(b)) + if a == b { 1.0 } else { 0.0 };
            let factor = Factor::new(order, matrix).unwrap();
            let right = &entries[144..144 + order];
            let solved = factor.solve(right);
            for (a, wanted) in right.iter().enumerate() {
                let value: f64 = (0..order).map(|b| matrix(a, b) * solved[b]).sum();
                prop_assert!((value - wanted).abs() < 1e-9);
            }
            for (index, value) in factor.inverse_diagonal().into_iter().enumerate() {
                let unit: Vec<f64> = (0..order).map(|a| if a == index { 1.0 } else { 0.0 }).collect();
                prop_assert!((value - factor.solve(&unit)[index]).abs() < 1e-9);
            }
        }
    }
}
