//! The ratio method ([ESX Disk 2003], section 4): an application that waits for its disk alone loses what a
//! load of the same kind loses, in the part of a surface that is like it.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::{PointKey, Profile};

use super::sampling::{SAMPLES, Sample, interval};
use crate::interval::Span;
use crate::surface::Comparison;

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

/// A figure that lies outside what was measured; the nearest measured value stands for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beyond {
    /// Which figure.
    pub axis: &'static str,
    /// Its value, with unit.
    pub asked: String,
    /// What was measured, with unit.
    pub measured: String,
}

impl std::fmt::Display for Beyond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} lies outside what was measured ({})", self.axis, self.asked, self.measured)
    }
}

/// Both sides at one place of the surface.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Local {
    /// Logarithm of the subject's rate over the reference's.
    pub ln_ratio: f64,
    /// Standard deviation of that.
    pub deviation: f64,
    /// Logarithm of the reference's operations per second.
    pub ln_iops: f64,
}

/// Sizes of an application's operations, in bytes, with their shares of them, which make 1.
pub(super) type Sizes = Vec<(f64, f64)>;

/// A surface between whose points can be read.
#[derive(Debug)]
pub(super) struct Matching {
    points: BTreeMap<PointKey, Local>,
    axes: [Vec<f64>; 3],
    /// Whether any point has an interval.
    pub has_spread: bool,
}

/// Standard deviations on each side of a 95 % interval.
const SIGMAS: f64 = 1.96;

impl Matching {
    /// The points that were measured on both sides; `None` without any.
    pub(super) fn new(comparison: &Comparison) -> Option<Self> {
        let mut points = BTreeMap::new();
        let mut has_spread = false;
        for point in &comparison.points {
            let (Some(ratio), Some(iops)) = (point.ratio, point.reference.iops) else { continue };
            if !(ratio.value > 0.0 && iops.mean > 0.0) {
                continue;
            }
            let half = ratio.interval.map_or(0.0, |span| (span.high / span.low).ln() / 2.0);
            has_spread |= ratio.interval.is_some();
            let local =
                Local { ln_ratio: ratio.value.ln(), deviation: half / SIGMAS, ln_iops: iops.mean.ln() };
            points.insert(point.key, local);
        }
        let axis = |of: fn(&PointKey) -> f64| {
            let mut values: Vec<f64> = points.keys().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            values
        };
        let axes = [
            axis(|key| (key.block_bytes as f64).log2()),
            axis(|key| f64::from(key.read_percent)),
            axis(|key| f64::from(key.random_percent)),
        ];
        (!points.is_empty()).then_some(Self { points, axes, has_spread })
    }

    /// The surface at a place, linear in the logarithm of the size and in both shares between the points
    /// around it; outside, the value of its edge. Points missing around it leave the others more weight,
    /// and how far those around it differ counts as uncertainty.
    pub(super) fn at(&self, size_bytes: f64, read_percent: f64, random_percent: f64) -> Local {
        let place = [size_bytes.max(1.0).log2(), read_percent, random_percent];
        let around = [0, 1, 2].map(|axis| bracket(&self.axes[axis], place[axis]));
        let mut corners: Vec<(f64, Local)> = Vec::with_capacity(8);
        for (key, local) in &self.points {
            let at = coordinates(key);
            let weight: f64 = (0..3).map(|axis| weight(around[axis], at[axis])).product();
            if weight > 0.0 {
                corners.push((weight, *local));
            }
        }
        if corners.is_empty() {
            return self.nearest(place);
        }
        let sum: f64 = corners.iter().map(|(weight, _)| weight).sum();
        let mean = |of: fn(&Local) -> f64| {
            corners.iter().map(|(weight, local)| weight / sum * of(local)).sum::<f64>()
        };
        let ln_ratio = mean(|local| local.ln_ratio);
        let noise: f64 = corners.iter().map(|(weight, local)| (weight / sum * local.deviation).powi(2)).sum();
        let between: f64 =
            corners.iter().map(|(weight, local)| weight / sum * (local.ln_ratio - ln_ratio).powi(2)).sum();
        Local { ln_ratio, deviation: (noise + between).sqrt(), ln_iops: mean(|local| local.ln_iops) }
    }

    /// Where the grid has a hole. Axes count alike, each over its own extent.
    fn nearest(&self, place: [f64; 3]) -> Local {
        let extent = [0, 1, 2].map(|axis| {
            let values = &self.axes[axis];
            values.last().zip(values.first()).map_or(1.0, |(last, first)| (last - first).max(1e-9))
        });
        let distance = |key: &PointKey| -> f64 {
            let at = coordinates(key);
            (0..3).map(|axis| ((at[axis] - place[axis]) / extent[axis]).powi(2)).sum()
        };
        let nearest = self.points.iter().min_by(|(a, _), (b, _)| distance(a).total_cmp(&distance(b)));
        nearest.map_or_else(Local::default, |(_, local)| *local)
    }

    /// Where a profile lies outside.
    pub(super) fn beyond(&self, profile: &Profile, sizes: &Sizes) -> Vec<Beyond> {
        let mut found = Vec::new();
        let range = |axis: usize| (self.axes[axis][0], self.axes[axis][self.axes[axis].len() - 1]);
        let kib = |log2: f64| {
            format!("{:.4}", log2.exp2() / 1024.0).trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let (low, high) = range(0);
        for (size, share) in sizes.iter().filter(|(size, _)| {
            let log2 = size.log2();
            log2 < low - 1e-6 || log2 > high + 1e-6
        }) {
            found.push(Beyond {
                axis: "a block size",
                asked: format!("{:.1} KiB ({:.0} % of the operations)", size / 1024.0, 100.0 * share),
                measured: format!("{} to {} KiB", kib(low), kib(high)),
            });
        }
        let random = profile.random_band();
        let reads = profile.read_percent();
        let shares = [
            (1, "a share of reads", reads.unwrap_or(0.0), reads.unwrap_or(100.0)),
            (2, "a randomness", random.low_percent, random.high_percent),
        ];
        for (axis, name, least, most) in shares {
            let (low, high) = range(axis);
            if least < low - 0.5 || most > high + 0.5 {
                let asked = if most - least < 1e-9 {
                    format!("{most:.0} %")
                } else {
                    format!("{least:.0} to {most:.0} %")
                };
                found.push(Beyond { axis: name, asked, measured: format!("{low:.0} to {high:.0} %") });
            }
        }
        found
    }
}

fn coordinates(key: &PointKey) -> [f64; 3] {
    [(key.block_bytes as f64).log2(), f64::from(key.read_percent), f64::from(key.random_percent)]
}

/// The values of an axis around a place, and how far it is from the first to the second.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    low: f64,
    high: f64,
    share: f64,
}

fn bracket(axis: &[f64], place: f64) -> Bracket {
    let place = place.clamp(axis[0], axis[axis.len() - 1]);
    let above = axis.iter().position(|value| *value >= place).unwrap_or(axis.len() - 1);
    let (low, high) = (axis[above.saturating_sub(1)], axis[above]);
    let share = if high > low { (place - low) / (high - low) } else { 1.0 };
    Bracket { low, high, share }
}

#[allow(clippy::float_cmp)] // both come from the same axis
fn weight(bracket: Bracket, at: f64) -> f64 {
    if at == bracket.high {
        bracket.share
    } else if at == bracket.low {
        1.0 - bracket.share
    } else {
        0.0
    }
}

/// The sizes of a profile's operations; one of the surface's own where nothing is known of them.
pub(super) fn sizes(profile: &Profile) -> Option<Sizes> {
    let shares = profile.size_shares()?;
    let sum: f64 = shares.iter().map(|size| size.share_percent).sum();
    Some(shares.iter().map(|size| (size.size_bytes, size.share_percent / sum)).collect())
}
