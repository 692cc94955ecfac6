//! How long a batch will take ([VirtualFence 2013], section 6.3): seek distance decides on the slow device, number on the fast one.
//!
//! Coefficients are injected; [`fit_slow`] and [`fit_fast`] find them from measured batches.

use thiserror::Error;

/// Piecewise-linear access time of the slow device over the distance from the end of one access to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowPredictor {
    knots: Vec<Knot>,
    flush_ns: u64,
}

/// A corner of the piecewise-linear curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// Distance in bytes.
    pub distance_bytes: u64,
    /// Predicted access time, transfer and rotation included.
    pub access_ns: f64,
}

impl SlowPredictor {
    /// A curve through `knots`, constant before the first and after the last; without knots all is predicted free.
    /// `flush_ns`: a flush of the device's cache.
    #[must_use]
    pub fn new(mut knots: Vec<Knot>, flush_ns: u64) -> Self {
        knots.sort_by_key(|knot| knot.distance_bytes);
        knots.dedup_by_key(|knot| knot.distance_bytes);
        Self { knots, flush_ns }
    }

    /// The curve's corners, nearest first.
    #[must_use]
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// A flush of the device's cache.
    #[must_use]
    pub const fn flush_ns(&self) -> u64 {
        self.flush_ns
    }

    /// Access at byte `to` after one that ended at byte `from`, in nanoseconds.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float becomes the nearest u64 there is
    pub fn access_ns(&self, from: u64, to: u64) -> u64 {
        let distance = from.abs_diff(to);
        let after = self.knots.partition_point(|knot| knot.distance_bytes <= distance);
        let ns = match (after.checked_sub(1).map(|before| self.knots[before]), self.knots.get(after)) {
            (None, None) => 0.0,
            (None, Some(knot)) => knot.access_ns,
            (Some(knot), None) => knot.access_ns,
            (Some(a), Some(b)) => {
                let width = (b.distance_bytes - a.distance_bytes) as f64;
                a.access_ns + (b.access_ns - a.access_ns) * (distance - a.distance_bytes) as f64 / width
            }
        };
        ns.max(0.0) as u64
    }

    /// Accesses `(offset, length)` in ascending order of offset, begun with the head at `head`.
    #[must_use]
    pub fn batch_ns(&self, head: u64, sorted: &[(u64, u32)]) -> u64 {
        let mut at = head;
        let mut sum = 0u64;
        for &(offset, len) in sorted {
            sum = sum.saturating_add(self.access_ns(at, offset));
            at = offset + u64::from(len);
        }
        sum
    }
}

/// Time of a batch on the fast device: `base_ns + per_io_ns * n` for n at least 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FastPredictor {
    /// Of a batch.
    pub base_ns: f64,
    /// Of each I/O in it.
    pub per_io_ns: f64,
}

impl FastPredictor {
    /// A batch of `count`, in nanoseconds.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float becomes the nearest u64 there is
    pub fn batch_ns(&self, count: usize) -> u64 {
        if count == 0 { 0 } else { (self.base_ns + self.per_io_ns * count as f64).max(0.0) as u64 }
    }

    /// The largest batch up to `most` that is predicted to fit into `remaining_ns`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float becomes the nearest usize there is
    pub fn largest(&self, remaining_ns: u64, most: usize) -> usize {
        if self.batch_ns(1) > remaining_ns {
            return 0;
        }
        if self.per_io_ns <= 0.0 {
            return most;
        }
        (((remaining_ns as f64 - self.base_ns) / self.per_io_ns) as usize).clamp(1, most.max(1)).min(most)
    }
}

/// Both devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictors {
    /// The slow device.
    pub slow: SlowPredictor,
    /// The fast device.
    pub fast: FastPredictor,
}

/// A batch that the slow device served, in ascending order of offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowSample {
    /// Distance in bytes of each access from the end of the one before; of the first, from where the head was.
    pub distances_bytes: Vec<u64>,
    /// From the start of the first to the end of the last.
    pub service_ns: u64,
}

/// A batch that the fast device served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastSample {
    /// I/Os submitted at once.
    pub count: usize,
    /// From submission to the last completion.
    pub service_ns: u64,
}

/// Batches that determine no coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum FitError {
    /// Fewer batches than unknowns.
    #[error("{samples} batches cannot determine {unknowns} coefficients: measure at least {} batches", unknowns * 4)]
    TooFew {
        samples: usize,
        /// Wanted.
        unknowns: usize,
    },
    /// All batches are alike.
    #[error("the batches are too much alike to tell the coefficients apart: vary their sizes and places")]
    Degenerate,
}

/// Coefficients with their errors on held-out batches.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted<P> {
    /// The predictor.
    pub predictor: P,
    /// Predicted less measured of every held-out batch, in nanoseconds, in the order of the samples.
    pub errors_ns: Vec<i64>,
}

impl<P> Fitted<P> {
    /// The share of held-out batches predicted within plus or minus `ns`.
    #[must_use]
    pub fn share_within(&self, ns: u64) -> f64 {
        let within = self.errors_ns.iter().filter(|error| error.unsigned_abs() <= ns).count();
        within as f64 / self.errors_ns.len().max(1) as f64
    }
}

/// Fits the piecewise-linear curve by least squares, with up to `corners` corners. Every second batch is held
/// out.
///
/// # Errors
/// Too few batches, or too much alike.
pub fn fit_slow(
    samples: &[SlowSample],
    corners: usize,
    flush_ns: u64,
) -> Result<Fitted<SlowPredictor>, FitError> {
    let (train, held_out) = split(samples);
    let distances = corner_distances(&train, corners);
    enough(&train, distances.len())?;
    let rows: Vec<Vec<f64>> = train.iter().map(|sample| hat_sums(&distances, sample)).collect();
    let y: Vec<f64> = train.iter().map(|sample| sample.service_ns as f64).collect();
    let ones = vec![1.0; y.len()];
    let access_ns = weighted_least_squares(&rows, &y, &ones).ok_or(FitError::Degenerate)?;
    let corner =
        |(&distance_bytes, access_ns): (&u64, f64)| Knot { distance_bytes, access_ns: access_ns.max(0.0) };
    let predictor = SlowPredictor::new(distances.iter().zip(access_ns).map(corner).collect(), flush_ns);
    let predict =
        |sample: &SlowSample| sample.distances_bytes.iter().map(|&d| predictor.access_ns(0, d)).sum();
    let errors_ns = held_out.iter().map(|sample| error_ns(predict(sample), sample.service_ns)).collect();
    Ok(Fitted { predictor, errors_ns })
}

/// Fits the line over the batch's size by least absolute deviations, so that the few batches that meet an erase stall
/// do not lift all predictions. Every second batch is held out.
///
/// # Errors
/// Too few batches, or too much alike.
pub fn fit_fast(samples: &[FastSample]) -> Result<Fitted<FastPredictor>, FitError> {
    const ROUNDS: usize = 50;
    const FLOOR_NS: f64 = 100.0;
    let (train, held_out) = split(samples);
    enough(&train, 2)?;
    let rows: Vec<Vec<f64>> = train.iter().map(|sample| vec![1.0, sample.count as f64]).collect();
    let y: Vec<f64> = train.iter().map(|sample| sample.service_ns as f64).collect();
    let mut weights = vec![1.0; y.len()];
    let mut line = Vec::new();
    for _ in 0..ROUNDS {
        line = weighted_least_squares(&rows, &y, &weights).ok_or(FitError::Degenerate)?;
        for ((weight, row), y) in weights.iter_mut().zip(&rows).zip(&y) {
            *weight = 1.0 / (y - line[0] - line[1] * row[1]).abs().max(FLOOR_NS);
        }
    }
    let predictor = FastPredictor { base_ns: line[0].max(0.0), per_io_ns: line[1].max(0.0) };
    let errors_ns = held_out.iter().map(|s| error_ns(predictor.batch_ns(s.count), s.service_ns)).collect();
    Ok(Fitted { predictor, errors_ns })
}

fn split<S>(samples: &[S]) -> (Vec<&S>, Vec<&S>) {
    (samples.iter().step_by(2).collect(), samples.iter().skip(1).step_by(2).collect())
}

fn enough<S>(train: &[S], unknowns: usize) -> Result<(), FitError> {
    if unknowns == 0 || train.len() < unknowns * 2 {
        return Err(FitError::TooFew { samples: train.len() * 2, unknowns });
    }
    Ok(())
}

fn error_ns(predicted: u64, measured: u64) -> i64 {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    signed(predicted).saturating_sub(signed(measured))
}

/// Corners that lie closer where the curve is steeper, at `(k / n)^2` of the longest distance; only those are kept that
/// have an access between them and the corner before, else nothing would determine them.
fn corner_distances(train: &[&SlowSample], corners: usize) -> Vec<u64> {
    let mut distances: Vec<u64> =
        train.iter().flat_map(|sample| sample.distances_bytes.iter().copied()).collect();
    distances.sort_unstable();
    let (Some(&least), Some(&most)) = (distances.first(), distances.last()) else { return Vec::new() };
    let steps = corners.max(2) as u128 - 1;
    let mut chosen = vec![least];
    for step in 1..=steps {
        let corner = u64::try_from(u128::from(most) * step * step / (steps * steps)).unwrap_or(most);
        let before = chosen[chosen.len() - 1];
        let count = |up_to: u64| distances.partition_point(|&distance| distance <= up_to);
        if corner > before && count(corner) > count(before) {
            chosen.push(corner);
        }
    }
    chosen
}

/// How much of each corner's value the sample's accesses add up to.
fn hat_sums(corners: &[u64], sample: &SlowSample) -> Vec<f64> {
    let mut sums = vec![0.0; corners.len()];
    for &distance in &sample.distances_bytes {
        let after = corners.partition_point(|&corner| corner <= distance);
        match after.checked_sub(1) {
            None => sums[0] += 1.0,
            Some(before) if after == corners.len() => sums[before] += 1.0,
            Some(before) => {
                let width = (corners[after] - corners[before]) as f64;
                let share = (distance - corners[before]) as f64 / width;
                sums[before] += 1.0 - share;
                sums[after] += share;
            }
        }
    }
    sums
}

/// The coefficients c that minimise `sum w (y - x.c)^2`, or `None` if the rows do not determine them.
fn weighted_least_squares(rows: &[Vec<f64>], y: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
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

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
