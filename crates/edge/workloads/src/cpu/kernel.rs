//! What a kernel is, and what kernels check numbers with.
//!
//! Loops over grids and random numbers, as SciMark 2 has them: so short that a library would hide
//! what they stand for.

use virtbench_units::Random;

/// A computation with its data.
pub(crate) trait Kernel: Send {
    /// Computes once; returns whether the result is the known one. All data is made from fixed seeds,
    /// so results are known beforehand and a machine that computes wrong is found out.
    fn operation(&mut self) -> bool;
}

/// Whether two numbers agree but for rounding: the sines of two C libraries differ in the last bit.
pub(super) fn agree(found: f64, known: f64) -> bool {
    (found - known).abs() <= 1e-9 * known.abs()
}

/// How many of 400,000 random points lie in a quarter of a circle.
pub(super) struct MonteCarlo;

impl Kernel for MonteCarlo {
    fn operation(&mut self) -> bool {
        let mut random = Random::new(6);
        let hits = (0..400_000).filter(|_| {
            let (x, y) = (random.unit(), random.unit());
            x * x + y * y <= 1.0
        });
        hits.count() == HITS
    }
}

const HITS: usize = 314_037;

/// 100 sweeps of successive over-relaxation over a grid of 100 x 100.
pub(super) struct Sor {
    start: Vec<f64>,
    grid: Vec<f64>,
}

/// Points of a side.
const SIDE: usize = 100;

impl Sor {
    pub(super) fn new() -> Self {
        let mut random = Random::new(7);
        let start: Vec<f64> = (0..SIDE * SIDE).map(|_| random.unit()).collect();
        Self { grid: start.clone(), start }
    }
}

impl Kernel for Sor {
    fn operation(&mut self) -> bool {
        const OMEGA: f64 = 1.25;
        self.grid.copy_from_slice(&self.start);
        for _ in 0..100 {
            for row in 1..SIDE - 1 {
                // Windows of the row above, its own and the one below, to spare the bounds checks.
                let (above, rest) = self.grid[(row - 1) * SIDE..].split_at_mut(SIDE);
                let (own, below) = rest.split_at_mut(SIDE);
                for column in 1..SIDE - 1 {
                    let around = above[column] + below[column] + own[column - 1] + own[column + 1];
                    own[column] = OMEGA * 0.25 * around + (1.0 - OMEGA) * own[column];
                }
            }
        }
        agree(self.grid.iter().sum(), RELAXED)
    }
}

const RELAXED: f64 = 4_990.558_713_170_295;

/// A matrix of 1,000 rows with 5,000 elements multiplied with a vector 200 times.
pub(super) struct Sparse {
    values: Vec<f64>,
    columns: Vec<usize>,
    vector: Vec<f64>,
    product: Vec<f64>,
}

const ROWS: usize = 1_000;

const IN_A_ROW: usize = 5;

impl Sparse {
    pub(super) fn new() -> Self {
        let mut random = Random::new(8);
        let values = (0..ROWS * IN_A_ROW).map(|_| random.unit()).collect();
        let columns = (0..ROWS * IN_A_ROW).map(|_| usize::try_from(random.below(ROWS as u64)).unwrap_or(0));
        let columns = columns.collect();
        let vector = (0..ROWS).map(|_| random.unit()).collect();
        Self { values, columns, vector, product: vec![0.0; ROWS] }
    }
}

impl Kernel for Sparse {
    fn operation(&mut self) -> bool {
        self.product.fill(0.0);
        for _ in 0..200 {
            let rows = self.values.chunks_exact(IN_A_ROW).zip(self.columns.chunks_exact(IN_A_ROW));
            for (product, (values, columns)) in self.product.iter_mut().zip(rows) {
                let row: f64 = values.iter().zip(columns).map(|(value, at)| value * self.vector[*at]).sum();
                *product += row;
            }
        }
        agree(self.product.iter().sum(), MULTIPLIED)
    }
}

const MULTIPLIED: f64 = 261_042.792_594_561_56;
