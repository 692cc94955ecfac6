//! The predictors' coefficients, found as [VirtualFence 2013], section 6.3 finds them: by benchmarking the service
//! times of many random batches, each with a random mix of reads and writes.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_fence::predict::{
    FastPredictor, FastSample, FitError, Fitted, Knot, Predictors, SlowPredictor, SlowSample, fit_fast,
    fit_slow,
};
use virtbench_units::{Random, SeedSequence};

use crate::disk::{Hdd, HddModel, Ssd, SsdModel};

/// Batches measured of each device; the fit holds half of them out.
pub const BATCHES: u32 = 16_000;
/// A batch has one to so many accesses ("each batch has a random size between 1 and 100").
pub const LARGEST: u64 = 100;
/// Corners of the piecewise-linear curve.
const CORNERS: usize = 12;
/// What a flush of the slow device is taken to cost: the models have nothing to flush.
const FLUSH_NS: u64 = 0;

/// Within how much of the measured time the paper's predictions lay, nanoseconds: slow and fast.
const PAPER_WITHIN_NS: [u64; 2] = [5_000_000, 250_000];

/// Batches that determine no predictor.
#[derive(Debug, Error, PartialEq)]
#[error("the {device} cannot be calibrated: {error}")]
pub struct CalibrationError {
    device: &'static str,
    #[source]
    error: FitError,
}

/// Predictors and how far they miss.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// For the scheduler.
    pub predictors: Predictors,
    /// The slow device's errors on batches that were held out.
    pub slow: Errors,
    /// The fast device's.
    pub fast: Errors,
}

/// The distribution of prediction errors, predicted less measured, over held-out batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Batches held out.
    pub batches: usize,
    /// Mean accesses of a batch, over all batches.
    pub mean_batch: f64,
    /// Mean service time of a batch, over all batches, milliseconds.
    pub mean_service_ms: f64,
    /// Errors at 5, 25, 50, 75 and 95 %, milliseconds.
    pub quantiles_ms: [f64; 5],
    /// The paper's limit, milliseconds.
    pub limit_ms: f64,
    /// Share of the batches predicted within that limit.
    pub within: f64,
}

/// The shares at which [`Errors::quantiles_ms`] stand.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// One access of a batch, of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Where, a multiple of the block.
    pub offset_bytes: u64,
    /// A write, or else a read.
    pub write: bool,
}

/// Draws the batches that devices are calibrated on: 1 to 100 accesses at random places, with a random mix of reads and
/// writes in each.
#[derive(Debug)]
pub struct Batches {
    random: Random,
    /// What one kind of device has no use for: where a fast access is, what a slow one does. Drawn apart, so that it is no
    /// part of the stream by which a model's batches are drawn.
    apart: Random,
    blocks: u64,
    block_bytes: u64,
}

impl Batches {
    /// Batches of blocks within the first `span_bytes` of a device.
    #[must_use]
    pub fn new(span_bytes: u64, block_bytes: u64, seed: u64) -> Self {
        let blocks = (span_bytes / block_bytes).max(1);
        let apart = Random::new(seed ^ 0x6170_6172_7400);
        Self { random: Random::new(seed), apart, blocks, block_bytes }
    }

    /// A batch for the slow device, in ascending order of offset.
    pub fn slow(&mut self) -> Vec<Access> {
        let writes = self.apart.unit();
        let count = 0..=self.random.below(LARGEST);
        let one = |_| Access {
            offset_bytes: self.random.below(self.blocks) * self.block_bytes,
            write: self.apart.unit() < writes,
        };
        let mut batch: Vec<Access> = count.map(one).collect();
        batch.sort_by_key(|access| access.offset_bytes);
        batch
    }

    /// A batch for the fast device.
    pub fn fast(&mut self) -> Vec<Access> {
        let count = 1 + self.random.below(LARGEST);
        let writes = self.random.unit();
        let one = |_| Access {
            write: self.random.unit() < writes,
            offset_bytes: self.apart.below(self.blocks) * self.block_bytes,
        };
        (0..count).map(one).collect()
    }
}

/// Measures batches of accesses of `block_bytes` on models of the devices and fits the predictors.
///
/// # Errors
/// A model whose batches are all alike.
pub fn calibrate(
    hdd: &HddModel,
    ssd: &SsdModel,
    block_bytes: u64,
    seed: u64,
) -> Result<Calibration, CalibrationError> {
    let mut seeds = SeedSequence::new(seed ^ 0x6361_6c69_6272_6174);
    let slow = slow_samples(hdd, block_bytes, &mut seeds);
    let fast = fast_samples(ssd, block_bytes, &mut seeds);
    let streaming_ns = streaming_ns(hdd, block_bytes, &mut seeds);
    let (slow, slow_errors) = fit_slow_device(&slow, streaming_ns, block_bytes, FLUSH_NS)?;
    let (fast, fast_errors) = fit_fast_device(&fast)?;
    Ok(Calibration { predictors: Predictors { slow, fast }, slow: slow_errors, fast: fast_errors })
}

/// The slow device's predictor from its batches, and how far it misses. `streaming_ns` is what a block takes that begins
/// where the last one ended. Random batches hold none of these, and the curve's value at no distance includes half a turn;
/// by it, a file of 32 blocks on its way from the cache to the disk would seem to take 180 ms instead of 2.
///
/// # Errors
/// Too few batches, or all alike.
pub fn fit_slow_device(
    samples: &[SlowSample],
    streaming_ns: f64,
    block_bytes: u64,
    flush_ns: u64,
) -> Result<(SlowPredictor, Errors), CalibrationError> {
    let fitted = fit_slow(samples, CORNERS, flush_ns)
        .map_err(|error| CalibrationError { device: "slow device", error })?;
    let batches = samples.iter().map(|sample| (sample.distances_bytes.len(), sample.service_ns));
    let errors = errors::<SlowPredictor>(&fitted, batches, PAPER_WITHIN_NS[0]);
    let curve = fitted.predictor;
    let near = Knot { distance_bytes: block_bytes, access_ns: curve.access_ns(0, block_bytes) as f64 };
    let farther = curve.knots().iter().copied().filter(|knot| knot.distance_bytes > block_bytes);
    let knots = [Knot { distance_bytes: 0, access_ns: streaming_ns }, near].into_iter().chain(farther);
    Ok((SlowPredictor::new(knots.collect(), flush_ns), errors))
}

/// The fast device's predictor from its batches, and how far it misses.
///
/// # Errors
/// Too few batches, or all alike.
pub fn fit_fast_device(samples: &[FastSample]) -> Result<(FastPredictor, Errors), CalibrationError> {
    let fitted = fit_fast(samples).map_err(|error| CalibrationError { device: "fast device", error })?;
    let batches = samples.iter().map(|sample| (sample.count, sample.service_ns));
    let errors = errors::<FastPredictor>(&fitted, batches, PAPER_WITHIN_NS[1]);
    Ok((fitted.predictor, errors))
}

fn streaming_ns(model: &HddModel, block_bytes: u64, seeds: &mut SeedSequence) -> f64 {
    let mut disk = Hdd::new(*model, seeds.next_seed());
    let run = (0..LARGEST).map(|_| disk.service_ns(disk.head(), block_bytes));
    run.sum::<u64>() as f64 / LARGEST as f64
}

fn slow_samples(model: &HddModel, block_bytes: u64, seeds: &mut SeedSequence) -> Vec<SlowSample> {
    let mut disk = Hdd::new(*model, seeds.next_seed());
    let mut batches = Batches::new(model.capacity_bytes, block_bytes, seeds.next_seed());
    let batch = |_| {
        let mut service_ns = 0;
        let distance = |access: Access| {
            let distance = access.offset_bytes.abs_diff(disk.head());
            service_ns += disk.service_ns(access.offset_bytes, block_bytes);
            distance
        };
        let distances_bytes = batches.slow().into_iter().map(distance).collect();
        SlowSample { distances_bytes, service_ns }
    };
    (0..BATCHES).map(batch).collect()
}

fn fast_samples(model: &SsdModel, block_bytes: u64, seeds: &mut SeedSequence) -> Vec<FastSample> {
    let mut drive = Ssd::new(*model, seeds.next_seed());
    let mut batches = Batches::new(u64::MAX, block_bytes, seeds.next_seed());
    let batch = |_| {
        let batch = batches.fast();
        let service_ns = batch.iter().map(|access| drive.service_ns(access.write, block_bytes)).sum();
        FastSample { count: batch.len(), service_ns }
    };
    (0..BATCHES).map(batch).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an index into the errors
fn errors<P>(fitted: &Fitted<P>, batches: impl Iterator<Item = (usize, u64)>, limit_ns: u64) -> Errors {
    let (mut count, mut accesses, mut service_ns) = (0u32, 0.0, 0.0);
    for (size, ns) in batches {
        count += 1;
        accesses += size as f64;
        service_ns += ns as f64;
    }
    let mut sorted = fitted.errors_ns.clone();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1) as f64;
    let at = |share: f64| sorted.get((share * last).round() as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e6);
    Errors {
        batches: sorted.len(),
        mean_batch: accesses / f64::from(count.max(1)),
        mean_service_ms: service_ns / 1e6 / f64::from(count.max(1)),
        quantiles_ms: QUANTILES.map(at),
        limit_ms: limit_ns as f64 / 1e6,
        within: fitted.share_within(limit_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SsdProfile;

    #[test]
    fn batches_take_what_the_paper_measured_and_are_predicted_without_bias() {
        let calibration =
            calibrate(&HddModel::default(), &SsdModel::new(SsdProfile::PaperFit), 4096, 1).unwrap();
        // Paper: 50 accesses, 336 ms; 49 accesses, 19.4 ms, 83 % within 0.25 ms.
        let (slow, fast) = (&calibration.slow, &calibration.fast);
        assert!(
            (slow.mean_batch - 50.5).abs() < 1.5 && (slow.mean_service_ms - 350.0).abs() < 25.0,
            "{slow:?}"
        );
        assert!(slow.quantiles_ms[2].abs() < 2.0, "{slow:?}");
        // 41 turns' standard deviations of 2.4 ms each: no curve does better than about a third.
        assert!((0.2..0.5).contains(&slow.within), "{slow:?}");
        assert!((fast.within - 0.81).abs() < 0.05, "{fast:?}");
        assert!((calibration.predictors.fast.per_io_ns - 396_000.0).abs() < 4000.0);
    }

    #[test]
    fn a_disk_that_does_not_turn_is_predicted_within_a_few_percent() {
        let still = HddModel { rpm: 1e12, ..HddModel::default() };
        let calibration = calibrate(&still, &SsdModel::new(SsdProfile::Spec), 4096, 2).unwrap();
        assert!(calibration.slow.within > 0.9, "{:?}", calibration.slow);
    }
}
