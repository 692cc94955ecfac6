//! How long a batch will take ([VirtualFence 2013], section 6.3): seek distance decides on the slow device, number on the fast one.
//!
//! Coefficients are injected; [`fit_slow`] and [`fit_fast`] find them from measured batches.

mod fit;
mod solve;

pub use fit::{FastSample, FitError, Fitted, SlowSample, fit_fast, fit_slow};

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

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
