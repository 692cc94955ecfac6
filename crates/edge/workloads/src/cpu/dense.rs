//! Dense numbers: Fourier transforms and linear systems.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use rustfft::num_complex::Complex;
use rustfft::{Fft as Transform, FftPlanner};
use virtbench_units::Random;

use super::kernel::{Kernel, agree};

/// 32,768 complex numbers transformed there and back.
pub(super) struct Fft {
    signal: Vec<Complex<f64>>,
    work: Vec<Complex<f64>>,
    there: Arc<dyn Transform<f64>>,
    back: Arc<dyn Transform<f64>>,
}

impl Fft {
    pub(super) fn new() -> Self {
        const LENGTH: usize = 1 << 15;
        let mut random = Random::new(4);
        let signal: Vec<_> = (0..LENGTH).map(|_| Complex::new(random.unit(), random.unit())).collect();
        let mut planner = FftPlanner::new();
        let (there, back) = (planner.plan_fft_forward(LENGTH), planner.plan_fft_inverse(LENGTH));
        Self { work: signal.clone(), signal, there, back }
    }
}

impl Kernel for Fft {
    fn operation(&mut self) -> bool {
        self.work.copy_from_slice(&self.signal);
        self.there.process(&mut self.work);
        let spectrum: f64 =
            self.work.iter().zip(1u8..=7).map(|(x, weight)| x.norm() * f64::from(weight)).sum();
        self.back.process(&mut self.work);
        let scale = 1.0 / self.work.len() as f64;
        let returned = self.work.iter().zip(&self.signal).all(|(x, y)| (x * scale - y).norm_sqr() < 1e-20);
        returned && agree(spectrum, SPECTRUM)
    }
}

const SPECTRUM: f64 = 25_262.108_706_116_79;

/// A system of 160 equations solved by LU decomposition.
pub(super) struct Lu {
    matrix: DMatrix<f64>,
    right: DVector<f64>,
}

impl Lu {
    pub(super) fn new() -> Self {
        const SIZE: usize = 160;
        let mut random = Random::new(5);
        let matrix = DMatrix::from_fn(SIZE, SIZE, |_, _| random.unit() - 0.5);
        // The solution is then all ones.
        let right = matrix.column_sum();
        Self { matrix, right }
    }
}

impl Kernel for Lu {
    fn operation(&mut self) -> bool {
        let decomposition = self.matrix.clone().lu();
        let solved = decomposition.solve(&self.right);
        let ones = solved.is_some_and(|solution| solution.iter().all(|x| (x - 1.0).abs() < 1e-8));
        let logarithm: f64 = decomposition.u().diagonal().iter().map(|x| x.abs().ln()).sum();
        ones && agree(logarithm, LOG_DETERMINANT)
    }
}

const LOG_DETERMINANT: f64 = 122.486_281_804_251_19;
