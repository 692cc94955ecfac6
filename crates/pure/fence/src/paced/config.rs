//! What each disk is promised, and how promises are kept.

use crate::config_error::ConfigError;
use crate::parameters::Parameters;
use crate::predict::Predictors;

/// A dedicated virtual device for each disk, and the order in which the physical ones serve.
#[derive(Debug, Clone, PartialEq)]
pub struct PacedConfig {
    /// By disk.
    pub classes: Vec<Class>,
    /// Service times are predicted with this.
    pub predict: Predictors,
    /// Time that is reserved for a predicted one, as a factor above 0. More than 1 keeps room for the head's way between
    /// partitions; less than 1 counts on what sorting over all disks saves.
    pub reserve: f64,
    /// When an answer is due on the slow and on the fast device.
    pub due: [Due; 2],
    /// A disk may run ahead of its virtual device by so much before it is held to its share, nanoseconds.
    pub burst_ns: u64,
    /// Of the slow device's I/Os that are due so soon after the first one, the nearest is served first,
    /// nanoseconds. 0 serves strictly by due time.
    pub window_ns: u64,
    /// How long a device, slow and fast, must have been without predictable I/Os before best effort is served,
    /// nanoseconds. Without a guard best effort takes its place among the others by arrival.
    pub guard_ns: Option<[u64; 2]>,
}

/// What a disk is promised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Class {
    /// A share of both devices' time, above 0; those of all disks add up to at most 1.
    Predictable(f64),
    /// What is left, without a promise (section 8).
    BestEffort,
}

/// When an answer is due. It is never given earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So many nanoseconds after the virtual device has finished it: the virtual clock.
    AfterFinish(u64),
    /// So many nanoseconds after the virtual device has begun it: a constant delay for a disk that keeps to its share.
    AfterStart(u64),
}

impl PacedConfig {
    /// What lowers the mean response time of all machines by a quarter at less than `VirtualFence`'s deviation, on the three
    /// workloads of [VirtualFence 2013] in virtual time (`docs/decisions/0051-paced-virtual-devices.md`). Equal shares where none is given.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let equal = 1.0 / parameters.disks.len() as f64;
        let shares = parameters.disks.iter().map(|disk| Class::Predictable(disk.share.unwrap_or(equal)));
        Self {
            classes: shares.collect(),
            predict: parameters.predict.clone(),
            reserve: 0.9,
            due: [Due::AfterFinish(20_000_000), Due::AfterFinish(200_000)],
            burst_ns: 0,
            window_ns: 80_000_000,
            guard_ns: None,
        }
    }

    /// Checks that shares are there for all and not given away twice.
    ///
    /// # Errors
    /// What does not fit.
    pub fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        if self.classes.len() != disks {
            return Err(ConfigError::SharesPerDisk { given: self.classes.len(), disks });
        }
        let mut sum = 0.0;
        for (disk, class) in self.classes.iter().enumerate() {
            if let Class::Predictable(share) = class {
                if !(share.is_finite() && *share > 0.0) {
                    return Err(ConfigError::ZeroShare { disk });
                }
                sum += share;
            }
        }
        // A sum of fractions may be off by its last digits.
        if sum > 1.0 + 1e-9 || !(self.reserve.is_finite() && self.reserve > 0.0) {
            return Err(ConfigError::SharesBeyondDevice);
        }
        Ok(())
    }
}
