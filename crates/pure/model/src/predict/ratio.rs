//! The ratio method ([ESX Disk 2003], section 4): an application that waits for its disk alone loses what a
//! load of the same kind loses.

use virtbench_record::Profile;

use super::matching::{Matching, Sizes, sizes};
use super::sampling::{SAMPLES, Sample, interval};
use crate::interval::Span;

/// Levels of what is unknown over which the paper's projection takes its mean: 25, 50, 75 and 100 %
/// random.
const LEVELS: u32 = 4;

/// What the surface says of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioPrediction {
    /// Subject's rate as a share of the reference's: mean over what is unknown.
    pub ratio: f64,
    /// Its 95 % interval, over noise and what is unknown.
    pub interval: Option<Span>,
    /// The lowest and highest ratio over what is unknown alone.
    pub band: Span,
    /// Operations per second that the reference's disk can do of such I/O.
    pub reference_most_per_second: f64,
}

/// Reads a surface as an application uses it.
pub(super) struct Projection<'a> {
    matching: &'a Matching,
    sizes: Sizes,
    reads: [f64; 2],
    randoms: [f64; 2],
}

impl<'a> Projection<'a> {
    /// `None` where nothing is known of the sizes of operations.
    pub(super) fn new(matching: &'a Matching, profile: &Profile) -> Option<Self> {
        let random = profile.random_band();
        let read = profile.read_percent();
        Some(Self {
            matching,
            sizes: sizes(profile)?,
            reads: [read.unwrap_or(0.0), read.unwrap_or(100.0)],
            randoms: [random.low_percent, random.high_percent],
        })
    }

    pub(super) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The ratio and the reference's operations per second at a place in the bands (0 to 1 each), with
    /// measurements off by `sigmas` of their deviations.
    ///
    /// A disk that does operations of several sizes one after the other spends the sum of their times:
    /// rates are joined by their reciprocals.
    pub(super) fn at(&self, read: f64, random: f64, sigmas: f64) -> (f64, f64) {
        let within = |[low, high]: [f64; 2], share: f64| low + (high - low) * share;
        let (mut reference_s, mut subject_s) = (0.0, 0.0);
        for (size, share) in &self.sizes {
            let local = self.matching.at(*size, within(self.reads, read), within(self.randoms, random));
            let seconds = share * (-local.ln_iops).exp();
            reference_s += seconds;
            subject_s += seconds * (-(local.ln_ratio + sigmas * local.deviation)).exp();
        }
        (reference_s / subject_s, 1.0 / reference_s)
    }

    /// The same for a sample.
    pub(super) fn sampled(&self, sample: &mut Sample) -> (f64, f64) {
        self.at(sample.unit(), sample.unit(), sample.normal())
    }

    /// Whether anything is unknown but noise.
    #[allow(clippy::float_cmp)] // ends of a band are the same number where it is known
    fn is_certain(&self) -> bool {
        self.reads[0] == self.reads[1] && self.randoms[0] == self.randoms[1]
    }

    /// The prediction.
    pub(super) fn predict(&self, seed: u64) -> RatioPrediction {
        let levels = || (0..LEVELS).map(|level| f64::from(level) / f64::from(LEVELS - 1));
        let places: Vec<(f64, f64)> = if self.is_certain() {
            vec![self.at(0.0, 0.0, 0.0)]
        } else {
            levels()
                .flat_map(|read| levels().map(move |random| (read, random)))
                .map(|(read, random)| self.at(read, random, 0.0))
                .collect()
        };
        let mean = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).sum::<f64>() / places.len() as f64;
        let ratios = || places.iter().map(|(ratio, _)| *ratio);
        let band = Span {
            low: ratios().fold(f64::INFINITY, f64::min),
            high: ratios().fold(f64::NEG_INFINITY, f64::max),
        };
        let known = self.matching.has_spread || !self.is_certain();
        RatioPrediction {
            ratio: mean(|(ratio, _)| *ratio),
            interval: known.then(|| interval(SAMPLES, seed, |sample| Some(self.sampled(sample).0))).flatten(),
            band,
            reference_most_per_second: mean(|(_, most)| *most),
        }
    }
}
