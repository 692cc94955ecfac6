//! A study of sides: what its samples come to, each side against the first.

use std::collections::BTreeMap;

use virtbench_record::{
    Better, Conclusion, SampleNumbers, SamplesRecord, SamplesSideNumbers, SamplesSummary, SidesPlan,
    TimeCounts, TimePeak,
};

use crate::interval::{Estimate, FigureKind};
use crate::ratio::{Ratio, paired_ratio};

/// One number of one side.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleFound {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// By repetition.
    pub values: BTreeMap<u32, f64>,
    /// Over the repetitions.
    pub estimate: Option<Estimate>,
    /// Against the first side, repetition by repetition; nothing for that side.
    pub against_first: Option<Ratio>,
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplesSide {
    /// Its name.
    pub name: String,
    /// What was measured of it, in the order in which it was first measured anywhere.
    pub samples: Vec<SampleFound>,
    /// Times of all its repetitions together.
    pub times: Vec<TimeCounts>,
    /// Common times of the first of those, where there are several.
    pub peaks: Vec<Peak>,
    /// Repetitions that failed, and why.
    pub failures: Vec<String>,
    /// What this host lacks for it.
    pub unavailable: Option<String>,
}

impl SamplesSide {
    /// The number of this name.
    #[must_use]
    pub fn sample(&self, name: &str) -> Option<&SampleFound> {
        self.samples.iter().find(|one| one.name == name)
    }
}

/// All sides, in the plan's order.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplesAnalysis {
    /// The sides.
    pub sides: Vec<SamplesSide>,
}

/// What a sample is called, and how it is read.
type Kind = (String, String, Better);

/// What the records of a study come to. The plan's seed determines the resampling.
#[must_use]
pub fn analyse_samples(plan: &SidesPlan, records: &[SamplesRecord]) -> SamplesAnalysis {
    let mut kinds: Vec<Kind> = Vec::new();
    for sample in records.iter().filter_map(SamplesRecord::measured).flat_map(|one| &one.samples) {
        if kinds.iter().all(|(name, ..)| *name != sample.name) {
            kinds.push((sample.name.clone(), sample.unit.clone(), sample.better));
        }
    }
    let side = |name: &String| side(plan, records, &kinds, name);
    SamplesAnalysis { sides: plan.sides.iter().map(side).collect() }
}

fn side(plan: &SidesPlan, records: &[SamplesRecord], kinds: &[Kind], name: &str) -> SamplesSide {
    let of_side = || records.iter().filter(|record| record.key.side == name);
    let found = |(sample, unit, better): &Kind| {
        let values = values(records, name, sample);
        let first = plan.sides.first().filter(|first| *first != name);
        SampleFound {
            name: sample.clone(),
            unit: unit.clone(),
            better: *better,
            estimate: FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<_>>(), plan.seed),
            against_first: first
                .and_then(|first| paired_ratio(&self::values(records, first, sample), &values, plan.seed)),
            values,
        }
    };
    let times = times(of_side());
    SamplesSide {
        name: name.to_owned(),
        samples: kinds.iter().map(found).filter(|found| !found.values.is_empty()).collect(),
        peaks: times.first().map(|times| peaks(&times.counts)).unwrap_or_default(),
        times,
        failures: of_side().filter_map(|record| record.failure().map(str::to_owned)).collect(),
        unavailable: of_side().find_map(|record| record.unavailable().map(str::to_owned)),
    }
}

fn values(records: &[SamplesRecord], side: &str, sample: &str) -> BTreeMap<u32, f64> {
    let of_side = records.iter().filter(|record| record.key.side == side);
    let value = |record: &SamplesRecord| {
        let found = record.measured()?.samples.iter().find(|one| one.name == sample)?;
        Some((record.key.repetition, found.value))
    };
    of_side.filter_map(value).collect()
}

/// The times of all repetitions, by what took them.
fn times<'a>(records: impl Iterator<Item = &'a SamplesRecord>) -> Vec<TimeCounts> {
    let mut all: Vec<(String, BTreeMap<u64, u64>)> = Vec::new();
    for times in records.filter_map(SamplesRecord::measured).flat_map(|one| &one.times) {
        let at = all.iter().position(|(name, _)| *name == times.name).unwrap_or_else(|| {
            all.push((times.name.clone(), BTreeMap::new()));
            all.len() - 1
        });
        for (end, count) in &times.counts {
            let total = all[at].1.entry(*end).or_default();
            *total = total.saturating_add(*count);
        }
    }
    all.into_iter().map(|(name, counts)| TimeCounts { name, counts: counts.into_iter().collect() }).collect()
}

/// A time that is common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// The time, in nanoseconds.
    pub at_ns: u64,
    /// The part of all times that is around it, 0 to 1.
    pub share: f64,
}

/// Two peaks are as many times apart from each other, at least.
const APART: f64 = 1.5;

/// A peak has as large a part of all times, at least.
const LEAST_SHARE: f64 = 0.05;

/// Between two peaks counts fall below this part of the lower one.
const VALLEY: f64 = 0.5;

/// Fewer times than this have a shape by chance.
const LEAST_TIMES: u64 = 1000;

/// Bins for each power of two: wide enough to hold many of a peak's times.
const BINS_PER_OCTAVE: f64 = 6.0;

/// The common times, the shortest first: several, or none where there is one hill or too few times to say. `counts` has the upper end of
/// a range in nanoseconds and how many fell into it.
#[must_use]
pub fn peaks(counts: &[(u64, u64)]) -> Vec<Peak> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    if total < LEAST_TIMES {
        return Vec::new();
    }
    let bins = smoothed(&bins(counts));
    let hills = hills(&bins);
    let peak = |hill: &Hill| Peak { at_ns: at_ns(hill.top), share: hill.mass / total as f64 };
    let found: Vec<Peak> = hills.iter().map(peak).filter(|peak| peak.share >= LEAST_SHARE).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// Counts by logarithm of the time.
fn bins(counts: &[(u64, u64)]) -> Vec<f64> {
    let mut bins = Vec::new();
    for (end, count) in counts {
        let bin = bin_of(*end);
        if bins.len() <= bin {
            bins.resize(bin + 1, 0.0);
        }
        bins[bin] += *count as f64;
    }
    bins
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of 64 bits, never negative"
)]
fn bin_of(ns: u64) -> usize {
    ((ns.max(1) as f64).log2() * BINS_PER_OCTAVE) as usize
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the middle of a bin, never negative"
)]
fn at_ns(bin: usize) -> u64 {
    ((bin as f64 + 0.5) / BINS_PER_OCTAVE).exp2() as u64
}

/// Each bin with half of its neighbours, so that a gap of one bin is no valley.
fn smoothed(bins: &[f64]) -> Vec<f64> {
    let at = |index: usize| bins.get(index).copied().unwrap_or(0.0);
    (0..=bins.len())
        .map(|index| {
            let below = index.checked_sub(1).map_or(0.0, at);
            0.25 * below + 0.5 * at(index) + 0.25 * at(index + 1)
        })
        .collect()
}

/// A hill: its highest bin, and how much lies between its valleys.
#[derive(Debug, Clone, Copy)]
struct Hill {
    top: usize,
    height: f64,
    mass: f64,
}

/// The hills from left to right. Two that no deep valley parts, or that are close, are one.
fn hills(bins: &[f64]) -> Vec<Hill> {
    let mut hills: Vec<Hill> = Vec::new();
    let mut lowest = f64::INFINITY;
    let mut open: Option<Hill> = None;
    for (index, height) in bins.iter().copied().enumerate() {
        let Some(hill) = &mut open else {
            if height > 0.0 {
                open = Some(Hill { top: index, height, mass: height });
                lowest = f64::INFINITY;
            }
            continue;
        };
        let is_apart = (index - hill.top) as f64 >= BINS_PER_OCTAVE * APART.log2();
        // The valley is behind, and counts rise to twice its depth: another hill has begun.
        if is_apart && lowest < VALLEY * hill.height && height > lowest / VALLEY && height > 0.0 {
            hills.push(*hill);
            open = Some(Hill { top: index, height, mass: height });
            lowest = f64::INFINITY;
            continue;
        }
        hill.mass += height;
        if height > hill.height {
            (hill.top, hill.height) = (index, height);
            lowest = f64::INFINITY;
        }
        lowest = lowest.min(height);
    }
    hills.extend(open);
    hills
}

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_samples(conclusion: Conclusion, analysis: &SamplesAnalysis) -> SamplesSummary {
    SamplesSummary { conclusion, sides: analysis.sides.iter().map(side_numbers).collect() }
}

fn side_numbers(one: &SamplesSide) -> SamplesSideNumbers {
    let peak = |peak: &Peak| TimePeak { at_ns: peak.at_ns, share: peak.share };
    SamplesSideNumbers {
        name: one.name.clone(),
        samples: one.samples.iter().map(numbers).collect(),
        peaks: one.peaks.iter().map(peak).collect(),
        failures: one.failures.clone(),
        unavailable: one.unavailable.clone(),
    }
}

fn numbers(found: &SampleFound) -> SampleNumbers {
    SampleNumbers {
        name: found.name.clone(),
        unit: found.unit.clone(),
        better: found.better,
        value: found.estimate.map(Into::into),
        ratio: found.against_first.map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use virtbench_record::{NoDetail, Status};
    use virtbench_samples::samples as synthetic;

    use super::*;

    #[test]
    fn each_side_is_compared_with_the_first_repetition_by_repetition() {
        let analysis = analyse_samples(&synthetic::sides(), &synthetic::records());
        let [native, tap, vhost] = &analysis.sides[..] else { panic!("{analysis:?}") };
        let rate = native.sample("TCP to, 1 stream").expect("it was measured");
        assert!(rate.against_first.is_none() && rate.values.len() == 3);
        let rate = tap.sample("TCP to, 1 stream").expect("it was measured");
        let ratio = rate.against_first.expect("both were measured");
        assert!((ratio.value - 0.1).abs() < 1e-9 && ratio.pairs == 3, "{ratio:?}");
        assert_eq!(vhost.unavailable.as_deref(), Some("/dev/vhost-net: not found"));
        assert!(vhost.samples.is_empty() && vhost.failures.is_empty());
    }

    #[test]
    fn a_repetition_that_failed_has_no_part_in_a_ratio_and_stays_with_its_side() {
        let mut records = synthetic::records();
        let of_tap = records.iter_mut().find(|record| record.key.side == "tap").expect("there is one");
        of_tap.status = Status::Failed { why: "the guest died".into(), detail: NoDetail {} };
        let analysis = analyse_samples(&synthetic::sides(), &records);
        let tap = &analysis.sides[1];
        let ratio = tap.sample("requests").and_then(|one| one.against_first).expect("two are left");
        assert_eq!((ratio.pairs, ratio.unpaired), (2, 1));
        assert_eq!(tap.failures, ["the guest died"]);
    }

    #[test]
    fn times_of_repetitions_are_added_up() {
        let analysis = analyse_samples(&synthetic::sides(), &synthetic::records());
        let times = &analysis.sides[0].times[0];
        assert_eq!(times.counts, [(10_000, 300), (11_000, 900)]);
    }

    /// Times around `centre`, most of them near it.
    fn around(centre: u64, count: u64) -> Vec<(u64, u64)> {
        let parts = [(90, 5), (95, 20), (100, 50), (105, 20), (110, 5)];
        parts.iter().map(|(percent, part)| (centre * percent / 100, count * part / 100)).collect()
    }

    #[test]
    fn one_hill_has_no_peaks_to_tell_apart() {
        assert!(peaks(&around(20_000, 10_000)).is_empty());
        let mut tail = around(20_000, 10_000);
        tail.extend([(30_000, 300), (45_000, 150), (70_000, 80), (150_000, 20), (2_000_000, 3)]);
        assert!(peaks(&tail).is_empty(), "{:?}", peaks(&tail));
        assert!(peaks(&[]).is_empty() && peaks(&around(20_000, 500)).is_empty());
    }

    #[test]
    fn two_hills_are_found_with_their_parts() {
        let mut counts = around(20_000, 7_000);
        counts.extend(around(200_000, 3_000));
        let [fast, slow] = peaks(&counts)[..] else { panic!("{:?}", peaks(&counts)) };
        assert!((18_000..23_000).contains(&fast.at_ns) && (180_000..230_000).contains(&slow.at_ns));
        assert!((fast.share - 0.7).abs() < 0.02 && (slow.share - 0.3).abs() < 0.02, "{fast:?} {slow:?}");
    }

    #[test]
    fn a_few_slow_times_are_no_peak() {
        let mut counts = around(20_000, 10_000);
        counts.extend(around(200_000, 200));
        assert!(peaks(&counts).is_empty(), "{:?}", peaks(&counts));
    }
}
