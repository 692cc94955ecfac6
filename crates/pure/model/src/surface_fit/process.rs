//! A Gaussian process over the points of a surface (Rasmussen and Williams, "Gaussian Processes for
//! Machine Learning", MIT Press 2006; their algorithm 2.1, section 5.4.2 for leaving one out).
//!
//! How alike the throughput of two points is: the covariance of their logarithms.
//!
//! The kernel is a product over the three axes of (1 + what that axis explains), so that it holds
//! every main effect and every interaction (an ANOVA kernel; Duvenaud, "Automatic Model
//! Construction with Gaussian Processes", Cambridge 2014, section 6.3). A main effect is learnt from
//! all points at once, which is what makes a few of them enough.
//!
//! Surfaces are smooth inside and jump at their rims: purely sequential access, and within it pure
//! reads and pure writes, stand apart ([ESX Disk 2003], section 3.4). A smooth kernel would draw the
//! neighbours up with the peak; so each of these rims has a term of its own, shared only by points
//! on the same rim.
//!
//! Symmetric matrices by their Cholesky factors (Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 4.2.1 and
//! section 3.1): the few operations that a Gaussian process needs. A matrix is kept row by row.

use virtbench_record::PointKey;

/// The longest and the shortest step of the search for hyperparameters, as logarithms.
const STEPS: (f64, f64) = (1.0, 0.12);

/// Largest standard deviation of a hyperparameter's logarithm that is allowed for: the widest prior's.
const MOST_UNCERTAIN: f64 = 1.5;

/// Most rounds over all hyperparameters in one search.
const ROUNDS: usize = 40;

/// Added to the diagonal, relative to it, so that rounding leaves the matrix positive definite.
const JITTER: f64 = 1e-9;

/// A process conditioned on measurements.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    kernel: Kernel,
    places: Vec<GridPosition>,
    mean: f64,
    factor: Factor,
    weights: Vec<f64>,
}

impl Process {
    /// The process with this kernel, given `values` (logarithms of throughput) at `places`. `None`
    /// where nothing is given or the kernel is so extreme that the covariances cannot be factored.
    pub(crate) fn new(kernel: Kernel, places: &[GridPosition], values: &[f64]) -> Option<Self> {
        if places.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let covariance = kernel.covariance();
        let noise = kernel.noise();
        let factor = Factor::new(places.len(), |row, column| {
            let entry = covariance(&places[row], &places[column]);
            if row == column { entry * (1.0 + JITTER) + noise } else { entry }
        })?;
        let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let weights = factor.solve(&centred);
        Some(Self { kernel, places: places.to_vec(), mean, factor, weights })
    }

    /// The process whose hyperparameters are the most likely, given the values and what is known
    /// beforehand: each is moved up and down in turn, by ever smaller steps, from `start`.
    pub(crate) fn tuned(start: &Kernel, places: &[GridPosition], values: &[f64]) -> Option<Self> {
        let mut best = Self::new(start.clone(), places, values)?;
        let mut likelihood = best.log_posterior(values);
        let mut step = STEPS.0;
        for _ in 0..ROUNDS {
            let mut improved = false;
            for index in 0..HYPERPARAMETERS {
                for signed in [step, -step] {
                    let kernel = best.kernel.moved(index, signed);
                    let Some(process) = Self::new(kernel, places, values) else { continue };
                    let found = process.log_posterior(values);
                    if found > likelihood + 1e-3 {
                        (best, likelihood, improved) = (process, found, true);
                        break;
                    }
                }
            }
            if !improved {
                step /= 2.0;
                if step < STEPS.1 {
                    break;
                }
            }
        }
        Some(best)
    }

    /// Logarithm of the density of the hyperparameters given the values, less a constant.
    fn log_posterior(&self, values: &[f64]) -> f64 {
        let fit: f64 =
            values.iter().zip(&self.weights).map(|(value, weight)| (value - self.mean) * weight).sum();
        -0.5 * fit - 0.5 * self.factor.ln_determinant() + self.kernel.log_prior()
    }

    /// Mean and variance of the logarithm at each of `places`, without noise, allowing for what is not
    /// known of the hyperparameters: each is moved by one posterior standard deviation up and down, by the
    /// curvature of its density (Laplace's approximation, each by itself), and what that does to means and
    /// variances is added. With the likeliest hyperparameters alone, few or noisy measurements would seem
    /// to tell more than they do: bounds of 95 % held 83 % of the truths with 8 % of noise.
    pub(crate) fn expect(&self, places: &[GridPosition], values: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (means, least) = self.predict(places);
        let mut total = least.clone();
        for index in 0..HYPERPARAMETERS {
            let step = self.uncertainty(index, values);
            let moved =
                [step, -step].map(|step| Self::new(self.kernel.moved(index, step), &self.places, values));
            let [Some(up), Some(down)] = moved else { continue };
            let [(up, more), (down, less)] = [up, down].map(|moved| moved.predict(places));
            for place in 0..places.len() {
                let grown = f64::midpoint(more[place], less[place]) - least[place];
                total[place] += grown.max(0.0) + ((up[place] - down[place]) / 2.0).powi(2);
            }
        }
        (means, total)
    }

    /// Posterior standard deviation of a hyperparameter's logarithm, by the curvature of its density.
    fn uncertainty(&self, index: usize, values: &[f64]) -> f64 {
        let here = self.log_posterior(values);
        let drops = [STEPS.0, -STEPS.0].map(|step| {
            let moved = Self::new(self.kernel.moved(index, step), &self.places, values);
            moved.map_or(f64::INFINITY, |moved| here - moved.log_posterior(values))
        });
        let curvature = (drops[0] + drops[1]) / STEPS.0.powi(2);
        curvature.max(MOST_UNCERTAIN.powi(-2)).sqrt().recip()
    }

    /// The kernel it was built with.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Mean and variance of the logarithm at each of `places`, without noise.
    fn predict(&self, places: &[GridPosition]) -> (Vec<f64>, Vec<f64>) {
        let covariance = self.kernel.covariance();
        let at = |place: &GridPosition| {
            let cross: Vec<f64> = self.places.iter().map(|known| covariance(known, place)).collect();
            let half = self.factor.solve_lower(&cross);
            (dot(&cross, &self.weights) + self.mean, covariance(place, place) - dot(&half, &half))
        };
        places.iter().map(at).unzip()
    }

    /// The covariances of the logarithms at `places`, without noise: a row for each place.
    pub(crate) fn covariances(&self, places: &[GridPosition]) -> Vec<Vec<f64>> {
        let covariance = self.kernel.covariance();
        let half = |place: &GridPosition| {
            let cross: Vec<f64> = self.places.iter().map(|known| covariance(known, place)).collect();
            self.factor.solve_lower(&cross)
        };
        let halves: Vec<Vec<f64>> = places.iter().map(half).collect();
        let row = |(place, half): (&GridPosition, &Vec<f64>)| {
            let others = places.iter().zip(&halves);
            others.map(|(other, its)| covariance(place, other) - dot(half, its)).collect()
        };
        places.iter().zip(&halves).map(row).collect()
    }

    /// For each measurement, what the others would have predicted: the difference, and its standard
    /// deviation with noise, both of logarithms.
    pub(crate) fn leave_one_out(&self) -> Vec<(f64, f64)> {
        let precisions = self.factor.inverse_diagonal().into_iter();
        precisions
            .zip(&self.weights)
            .map(|(precision, weight)| (weight / precision, precision.recip().sqrt()))
            .collect()
    }
}

/// What a kernel and the noise are made of; each is positive, and tuned as a logarithm.
pub(crate) const HYPERPARAMETERS: usize = 11;

/// Median of each hyperparameter before anything is measured, and how many times more or less it
/// may well be (one standard deviation of the logarithm). Variances are of natural logarithms of
/// throughput; lengths are in units of an axis' whole range.
const PRIORS: [(f64, f64); HYPERPARAMETERS] = [
    (0.5, 1.5),  // scale of everything
    (1.0, 0.5),  // length over block sizes
    (0.8, 0.5),  // length over shares of reads
    (0.8, 0.5),  // length over shares of random seeks
    (1.0, 1.0),  // smooth effect of the block size
    (0.3, 1.0),  // smooth effect of reads
    (0.05, 1.5), // pure reads, pure writes: apart everywhere
    (1.0, 1.0),  // smooth effect of random seeks
    (0.5, 1.5),  // purely sequential: apart from the rest
    (0.3, 1.5),  // pure reads, pure writes: apart where access is purely sequential
    (4e-4, 1.2), // noise: 2 % of the throughput
];

/// The hyperparameters, as logarithms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kernel {
    logarithms: [f64; HYPERPARAMETERS],
}

impl Default for Kernel {
    fn default() -> Self {
        Self { logarithms: PRIORS.map(|(median, _)| median.ln()) }
    }
}

impl Kernel {
    /// This kernel with one hyperparameter's logarithm moved by `step`.
    pub(crate) fn moved(&self, index: usize, step: f64) -> Self {
        let mut moved = self.clone();
        moved.logarithms[index] += step;
        moved
    }

    /// Logarithm of the density of these hyperparameters before anything is measured, less a constant.
    pub(crate) fn log_prior(&self) -> f64 {
        let deviation = |(logarithm, (median, spread)): (&f64, &(f64, f64))| {
            -0.5 * ((logarithm - median.ln()) / spread).powi(2)
        };
        self.logarithms.iter().zip(&PRIORS).map(deviation).sum()
    }

    /// Variance of one measurement around the truth.
    pub(crate) fn noise(&self) -> f64 {
        self.logarithms[HYPERPARAMETERS - 1].exp()
    }

    /// The covariance function itself.
    pub(crate) fn covariance(&self) -> impl Fn(&GridPosition, &GridPosition) -> f64 + use<> {
        let [
            scale,
            block_length,
            read_length,
            random_length,
            block,
            read,
            read_rim,
            random,
            sequential,
            peak,
            _,
        ] = self.logarithms.map(f64::exp);
        move |one, other| {
            let same_rim = one.pure.is_some() && one.pure == other.pure;
            let both_sequential = one.sequential && other.sequential;
            let blocks = 1.0 + block * matern((one.block - other.block) / block_length);
            let mut reads = read * matern((one.read - other.read) / read_length);
            if same_rim {
                reads += read_rim;
                if both_sequential {
                    reads += peak;
                }
            }
            let mut randoms = random * matern((one.random - other.random) / random_length);
            if both_sequential {
                randoms += sequential;
            }
            scale * blocks * (1.0 + reads) * (1.0 + randoms)
        }
    }
}

/// Matern's covariance with smoothness 5/2, at a distance in units of its length.
fn matern(distance: f64) -> f64 {
    let x = 5f64.sqrt() * distance.abs();
    (1.0 + x + x * x / 3.0) * (-x).exp()
}

/// A point of the surface as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GridPosition {
    /// Logarithm of the block size, 0 for the grid's smallest to 1 for its largest.
    block: f64,
    /// Share of reads, 0 to 1.
    read: f64,
    /// Share of random seeks, 0 to 1.
    random: f64,
    /// Whether nothing but writes (false) or nothing but reads (true) is done.
    pure: Option<bool>,
    /// Whether no operation seeks.
    sequential: bool,
}

impl GridPosition {
    /// Where `point` lies in a grid with these block sizes, in bytes.
    pub(crate) fn new(point: PointKey, smallest_bytes: u64, largest_bytes: u64) -> Self {
        let log = |bytes: u64| (bytes.max(1) as f64).log2();
        let range = (log(largest_bytes) - log(smallest_bytes)).max(1.0);
        Self {
            block: (log(point.block_bytes) - log(smallest_bytes)) / range,
            read: f64::from(point.read_percent) / 100.0,
            random: f64::from(point.random_percent) / 100.0,
            pure: match point.read_percent {
                0 => Some(false),
                100 => Some(true),
                _ => None,
            },
            sequential: point.random_percent == 0,
        }
    }
}

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
