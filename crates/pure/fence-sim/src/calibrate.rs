//! The predictors' coefficients, found as paper 5, section 6.3 finds them: by benchmarking the service
//! times of many random batches, each with a random mix of reads and writes.

use serde::Serialize;
use thiserror::Error;
use virtbench_fence::predict::{
    FastPredictor, FastSample, FitError, Fitted, Knot, Predictors, SlowPredictor, SlowSample, fit_fast,
    fit_slow,
};
use virtbench_units::{Random, SeedSequence};

use crate::disk::{Hdd, HddModel, Ssd, SsdModel};

/// Batches measured of each device; the fit holds half of them out.
const BATCHES: u32 = 16_000;
/// A batch has one to so many accesses ("each batch has a random size between 1 and 100").
const LARGEST: u64 = 100;
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    let fitted_slow = fit_slow(&slow, CORNERS, FLUSH_NS)
        .map_err(|error| CalibrationError { device: "hard disk", error })?;
    let fitted_fast =
        fit_fast(&fast).map_err(|error| CalibrationError { device: "solid-state drive", error })?;
    let slow_batches = slow.iter().map(|sample| (sample.distances_bytes.len(), sample.service_ns));
    let fast_batches = fast.iter().map(|sample| (sample.count, sample.service_ns));
    Ok(Calibration {
        slow: errors::<SlowPredictor>(&fitted_slow, slow_batches, PAPER_WITHIN_NS[0]),
        fast: errors::<FastPredictor>(&fitted_fast, fast_batches, PAPER_WITHIN_NS[1]),
        predictors: Predictors {
            slow: with_streaming(&fitted_slow.predictor, hdd, block_bytes, &mut seeds),
            fast: fitted_fast.predictor,
        },
    })
}

/// The curve with a corner of its own for accesses that begin where the last one ended. Random batches
/// hold none of them, and the curve's value at no distance includes half a turn; by it, a file of 32
/// blocks on its way from the cache to the disk would seem to take 180 ms instead of 2.
fn with_streaming(
    fitted: &SlowPredictor,
    model: &HddModel,
    block_bytes: u64,
    seeds: &mut SeedSequence,
) -> SlowPredictor {
    let mut disk = Hdd::new(*model, seeds.next_seed());
    let run = (0..LARGEST).map(|_| disk.service_ns(disk.head(), block_bytes));
    let streaming_ns = run.sum::<u64>() as f64 / LARGEST as f64;
    let near = Knot { distance_bytes: block_bytes, access_ns: fitted.access_ns(0, block_bytes) as f64 };
    let beyond = fitted.knots().iter().copied().filter(|knot| knot.distance_bytes > block_bytes);
    let knots = [Knot { distance_bytes: 0, access_ns: streaming_ns }, near].into_iter().chain(beyond);
    SlowPredictor::new(knots.collect(), FLUSH_NS)
}

fn slow_samples(model: &HddModel, block_bytes: u64, seeds: &mut SeedSequence) -> Vec<SlowSample> {
    let mut disk = Hdd::new(*model, seeds.next_seed());
    let mut random = Random::new(seeds.next_seed());
    let blocks = (model.capacity_bytes / block_bytes).max(1);
    let batch = |_| {
        let mut offsets: Vec<u64> =
            (0..=random.below(LARGEST)).map(|_| random.below(blocks) * block_bytes).collect();
        offsets.sort_unstable();
        let mut service_ns = 0;
        let distances_bytes = offsets
            .iter()
            .map(|offset| {
                let distance = offset.abs_diff(disk.head());
                service_ns += disk.service_ns(*offset, block_bytes);
                distance
            })
            .collect();
        SlowSample { distances_bytes, service_ns }
    };
    (0..BATCHES).map(batch).collect()
}

#[allow(clippy::cast_possible_truncation)] // at most LARGEST
fn fast_samples(model: &SsdModel, block_bytes: u64, seeds: &mut SeedSequence) -> Vec<FastSample> {
    let mut drive = Ssd::new(*model, seeds.next_seed());
    let mut random = Random::new(seeds.next_seed());
    let batch = |_| {
        let count = 1 + random.below(LARGEST) as usize;
        let writes = random.unit();
        let service_ns = (0..count).map(|_| drive.service_ns(random.unit() < writes, block_bytes)).sum();
        FastSample { count, service_ns }
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
            calibrate(&HddModel::default(), &SsdModel::of(SsdProfile::PaperFit), 4096, 1).unwrap();
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
        let calibration = calibrate(&still, &SsdModel::of(SsdProfile::Spec), 4096, 2).unwrap();
        assert!(calibration.slow.within > 0.9, "{:?}", calibration.slow);
    }
}
