//! A throughput surface from some of its points.
//!
//! A Gaussian process on the logarithm of throughput says for every point of a grid what is to be
//! expected there and how far off that may be. The next point to measure is the one that, by the
//! process, lessens the uncertainty of the whole grid most (Cohn, "Neural Network Exploration Using
//! Optimal Experiment Design", Neural Networks 9(6), 1996), which beats the most uncertain point:
//! that one tends to lie in a corner and says little of the others.

mod process;

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, StudentsT};
use virtbench_record::PointKey;

use crate::interval::{self, CONFIDENCE, Span};
use process::{GridPosition, Kernel, Process, dot};

/// The most points a grid may have: the work grows with their third power.
pub const MAX_GRID_POINTS: usize = 400;

/// Measurements between two searches for hyperparameters.
const TUNE_EVERY: usize = 3;

/// A measurement this many standard deviations from what all others say is made again: stalls of a
/// shared disk would otherwise be taken for the shape of the surface. With one stall in ten
/// measurements this halves the error; without any it changes little (see the tests).
const CONTRADICTED_SIGMAS: f64 = 2.5;
/// The most measurements of one point; their median counts.
const MOST_OF_A_POINT: usize = 3;

/// One point of a fitted surface, in the unit of what was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedPoint {
    /// Which point.
    pub point: PointKey,
    /// What to expect there.
    pub value: f64,
    /// Where the truth lies with 95 % confidence. On surfaces made up for tests it does at 94 to 100 % of
    /// the points with noise up to 2 %, and with noise of 8 % at 90 to 92 % once 30 points are measured
    /// (`bounds_hold_as_many_truths_as_they_say`).
    pub span: Span,
    /// Mean error to be expected of `value`, as a share of it (0.05 is 5 %).
    pub expected_error: f64,
    /// What was measured there, if anything was.
    pub measured: Option<f64>,
}

/// A fitted surface.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedSurface {
    /// Every point of the grid, in the grid's order.
    pub points: Vec<FittedPoint>,
    /// Median of the errors to be expected over the points that were not measured; 0 if all were.
    pub expected_error: f64,
    /// Median over the measured points of how far the others would have been off, as a share.
    pub left_out_error: f64,
    /// Standard deviation of one measurement around the truth, as a share.
    pub noise: f64,
}

/// Chooses points of a grid one after the other, and fits the surface to those that were measured.
#[derive(Debug, Clone)]
pub struct SurfaceFit {
    grid: Vec<PointKey>,
    places: Vec<GridPosition>,
    design: Vec<usize>,
    measured: BTreeMap<usize, Vec<f64>>,
    barred: BTreeSet<usize>,
    process: Option<Process>,
    tuned_at: usize,
}

impl SurfaceFit {
    /// Nothing measured yet of these points; a point that is given twice counts once, and what lies
    /// beyond [`MAX_GRID_POINTS`] is left out.
    #[must_use]
    pub fn new(points: &[PointKey]) -> Self {
        let mut grid: Vec<PointKey> = Vec::new();
        for point in points {
            if grid.len() < MAX_GRID_POINTS && !grid.contains(point) {
                grid.push(*point);
            }
        }
        let blocks = || grid.iter().map(|point| point.block_bytes);
        let (smallest, largest) = (blocks().min().unwrap_or(1), blocks().max().unwrap_or(1));
        let places = grid.iter().map(|point| GridPosition::new(*point, smallest, largest)).collect();
        let design = first_points(&grid);
        let (measured, barred) = (BTreeMap::new(), BTreeSet::new());
        Self { grid, places, design, measured, barred, process: None, tuned_at: 0 }
    }

    /// The points of the grid, each once.
    #[must_use]
    pub fn grid(&self) -> &[PointKey] {
        &self.grid
    }

    /// How many points were measured.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.measured.len()
    }

    /// Takes in what was measured at a point of the grid; of several values the median counts. `false`
    /// for a point outside the grid and for a value that has no logarithm (nothing was moved): that
    /// point is not asked for again.
    pub fn observe(&mut self, point: PointKey, value: f64) -> bool {
        let Some(index) = self.grid.iter().position(|known| *known == point) else { return false };
        if !(value.is_finite() && value > 0.0) {
            self.barred.insert(index);
            return false;
        }
        self.measured.entry(index).or_default().push(value);
        self.refit();
        true
    }

    /// The point to measure next: first the corners of the grid and its middle, then one again that
    /// the others contradict, then whichever lessens the variance of the whole grid most. `None` once
    /// all are measured.
    #[must_use]
    pub fn next_point(&self) -> Option<PointKey> {
        let planned = self.design.iter().copied().find(|index| self.is_open(*index));
        planned.or_else(|| self.contradicted()).or_else(|| self.most_telling()).map(|index| self.grid[index])
    }

    /// The measured point that is furthest from what the others say, if it is too far.
    fn contradicted(&self) -> Option<usize> {
        let left_out = self.process.as_ref()?.leave_one_out();
        let doubts = self.measured.iter().zip(left_out).map(|((index, values), (difference, deviation))| {
            (*index, values.len(), (difference / deviation).abs())
        });
        doubts
            .filter(|(_, count, sigmas)| *count < MOST_OF_A_POINT && *sigmas > CONTRADICTED_SIGMAS)
            .max_by(|one, other| one.2.total_cmp(&other.2))
            .map(|(index, ..)| index)
    }

    fn is_open(&self, index: usize) -> bool {
        !self.measured.contains_key(&index) && !self.barred.contains(&index)
    }

    fn most_telling(&self) -> Option<usize> {
        let open = (0..self.grid.len()).filter(|index| self.is_open(*index));
        let Some(process) = &self.process else { return open.min() };
        let covariances = process.covariances(&self.places);
        let noise = process.kernel().noise();
        let gain = |candidate: &usize| {
            let row = &covariances[*candidate];
            dot(row, row) / (row[*candidate].max(0.0) + noise)
        };
        open.max_by(|one, other| gain(one).total_cmp(&gain(other)))
    }

    /// The measured points as the process wants them: places and logarithms.
    fn samples(&self) -> (Vec<GridPosition>, Vec<f64>) {
        self.measured.iter().map(|(index, values)| (self.places[*index], median(values.clone()).ln())).unzip()
    }

    fn refit(&mut self) {
        let (places, values) = self.samples();
        let start = self.process.as_ref().map_or_else(Kernel::default, |process| process.kernel().clone());
        let planned = self.design.iter().any(|index| self.is_open(*index));
        let due = values.len() >= self.tuned_at + TUNE_EVERY.max(values.len() / 20);
        self.process = if !planned && (due || self.tuned_at == 0) {
            self.tuned_at = values.len();
            Process::tuned(&start, &places, &values)
        } else {
            Process::new(start, &places, &values)
        };
    }

    /// The whole surface as far as it is known. `None` before the first measurement.
    #[must_use]
    pub fn surface(&self) -> Option<FittedSurface> {
        let (places, values) = self.samples();
        let process = Process::tuned(self.process.as_ref()?.kernel(), &places, &values)?;
        let (means, variances) = process.expect(&self.places, &values);
        let left_out = process.leave_one_out();
        let scale = calibration(&left_out);
        let quantile = StudentsT::new(0.0, 1.0, (values.len().max(2) - 1) as f64)
            .map_or(2.0, |distribution| distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0));
        let points: Vec<FittedPoint> = (0..self.grid.len())
            .map(|index| {
                let deviation = scale * variances[index].max(0.0).sqrt();
                let span = Span {
                    low: means[index] - quantile * deviation,
                    high: means[index] + quantile * deviation,
                };
                FittedPoint {
                    point: self.grid[index],
                    value: means[index].exp(),
                    span: span.map(f64::exp),
                    expected_error: deviation * std::f64::consts::FRAC_2_PI.sqrt(),
                    measured: self.measured.get(&index).map(|values| median(values.clone())),
                }
            })
            .collect();
        let open = points.iter().filter(|point| point.measured.is_none());
        Some(FittedSurface {
            expected_error: median(open.map(|point| point.expected_error).collect()),
            left_out_error: median(
                left_out.iter().map(|(difference, _)| difference.exp_m1().abs()).collect(),
            ),
            noise: process.kernel().noise().sqrt(),
            points,
        })
    }
}

/// By how much the process underrates its errors: the root mean square of what leaving one out
/// shows, in units of what it claimed. Never below 1: luck is no reason for narrower bounds.
fn calibration(left_out: &[(f64, f64)]) -> f64 {
    let squares: f64 = left_out.iter().map(|(difference, deviation)| (difference / deviation).powi(2)).sum();
    (squares / left_out.len().max(1) as f64).sqrt().clamp(1.0, 3.0)
}

/// The corners of the grid and its middle, without which every prediction is an extrapolation.
fn first_points(grid: &[PointKey]) -> Vec<usize> {
    fn values<T: Ord + Copy>(grid: &[PointKey], of: fn(&PointKey) -> T) -> Vec<T> {
        let mut values: Vec<T> = grid.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
    let ends = |count: usize| if count > 1 { vec![0, count - 1] } else { vec![0; count] };
    let blocks = values(grid, |point| point.block_bytes);
    let reads = values(grid, |point| point.read_percent);
    let randoms = values(grid, |point| point.random_percent);
    let mut chosen = Vec::new();
    let mut choose = |block: usize, read: usize, random: usize| {
        let point = PointKey {
            block_bytes: blocks[block],
            read_percent: reads[read],
            random_percent: randoms[random],
        };
        chosen.extend(grid.iter().position(|known| *known == point));
    };
    for block in ends(blocks.len()) {
        for read in ends(reads.len()) {
            for random in ends(randoms.len()) {
                choose(block, read, random);
            }
        }
    }
    if !grid.is_empty() {
        choose(blocks.len() / 2, reads.len() / 2, randoms.len() / 2);
        choose(blocks.len() / 2, reads.len() / 2, 0);
    }
    let mut once: Vec<usize> = Vec::new();
    for index in chosen {
        if !once.contains(&index) {
            once.push(index);
        }
    }
    once
}

fn median(values: Vec<f64>) -> f64 {
    interval::median(values.into_iter()).unwrap_or(0.0)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
