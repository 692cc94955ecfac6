//! A Gaussian process over the points of a surface (Rasmussen and Williams, "Gaussian Processes for
//! Machine Learning", MIT Press 2006; their algorithm 2.1, section 5.4.2 for leaving one out).

use super::kernel::{GridPosition, HYPERPARAMETERS, Kernel};
use super::symmetric::{Factor, dot};

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
