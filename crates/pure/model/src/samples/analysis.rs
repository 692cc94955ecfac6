//! What the samples of a study come to.

use std::collections::BTreeMap;

use virtbench_record::{Better, SamplesRecord, SidesPlan, TimeCounts};

use super::peaks::{Peak, peaks};
use crate::interval::Estimate;
use crate::kind::FigureKind;
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

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::{NoDetail, Status};
    use virtbench_samples::samples as synthetic;

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
}
