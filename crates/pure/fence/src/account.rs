//! What a scheduler has counted of each disk since it began, for monitoring.

use crate::types::Device;

/// How often something was, and how long altogether.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The times, summed, in nanoseconds.
    pub sum_ns: u64,
}

impl Tally {
    /// Once more, unless it took no time at all.
    pub(crate) const fn add(&mut self, ns: u64) {
        if ns > 0 {
            self.count += 1;
            self.sum_ns = self.sum_ns.saturating_add(ns);
        }
    }
}

/// Batches on one device: what they were predicted to take, and what they took from their dispatch to the completion of
/// their last I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PredictionErrors {
    /// Batches that have completed.
    pub batches: u64,
    /// Their predictions, summed, in nanoseconds.
    pub predicted_ns: u64,
    /// Their times, summed, in nanoseconds.
    pub measured_ns: u64,
    /// The differences of the two without their signs, summed, in nanoseconds.
    pub absolute_ns: u64,
}

impl PredictionErrors {
    pub(crate) const fn add(&mut self, predicted_ns: u64, measured_ns: u64) {
        self.batches += 1;
        self.predicted_ns = self.predicted_ns.saturating_add(predicted_ns);
        self.measured_ns = self.measured_ns.saturating_add(measured_ns);
        self.absolute_ns = self.absolute_ns.saturating_add(measured_ns.abs_diff(predicted_ns));
    }

    /// How much longer batches took than predicted, in nanoseconds, on average; none without batches.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        self.mean(self.measured_ns as f64 - self.predicted_ns as f64)
    }

    /// How far predictions missed, in nanoseconds, on average; none without batches.
    #[must_use]
    pub fn mean_absolute_ns(&self) -> Option<f64> {
        self.mean(self.absolute_ns as f64)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.batches > 0).then(|| sum / self.batches as f64)
    }
}

/// A disk's slots ([VirtualFence 2013], section 6.3). Disks that share slots share the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotAccount {
    /// Slots that have begun, idle ones included.
    pub slots: u64,
    /// Those of them in which something was dispatched.
    pub used: u64,
    /// Slots that ended before their time.
    pub credit: Tally,
    /// Slots that ended after it.
    pub overrun: Tally,
    /// What slots to come are owed (positive) or owe, in nanoseconds.
    pub balance_ns: i64,
    /// By [`Device::index`].
    pub predictions: [PredictionErrors; 2],
}

impl SlotAccount {
    /// Of one device.
    #[must_use]
    pub const fn prediction(&self, device: Device) -> &PredictionErrors {
        &self.predictions[device.index()]
    }
}

/// A disk's token buckets: how much of its rate is saved up, in nanoseconds of it; negative where it has to wait. None
/// without a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenAccount {
    /// Of I/Os a second.
    pub ios_ns: Option<i64>,
    /// Of bytes a second.
    pub bytes_ns: Option<i64>,
}

/// A disk behind a virtual device of its own (see [`paced`](crate::paced)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacedAccount {
    /// Device I/Os that have completed.
    pub ios: u64,
    /// Those that were ready before they were due, and were held so long.
    pub held: Tally,
    /// Those that were ready after they were due.
    pub late: Tally,
}

/// What there is to be kept depends on the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Of [`Slots`](crate::slots::Slots).
    Slots(SlotAccount),
    /// Of [`TokenBucket`](crate::peers::TokenBucket).
    Tokens(TokenAccount),
    /// Of [`Paced`](crate::paced::Paced).
    Paced(PacedAccount),
}
