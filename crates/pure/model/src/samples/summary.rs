//! A study of sides as programs read it.

use virtbench_record::{Conclusion, SampleNumbers, SamplesSideNumbers, SamplesSummary, TimePeak};

use super::analysis::{SampleFound, SamplesAnalysis, SamplesSide};

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_samples(conclusion: Conclusion, analysis: &SamplesAnalysis) -> SamplesSummary {
    SamplesSummary { conclusion, sides: analysis.sides.iter().map(side).collect() }
}

fn side(one: &SamplesSide) -> SamplesSideNumbers {
    let peak = |peak: &super::Peak| TimePeak { at_ns: peak.at_ns, share: peak.share };
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
