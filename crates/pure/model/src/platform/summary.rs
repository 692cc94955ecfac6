//! A study of a platform as programs read it.

use virtbench_record::{Conclusion, PlatformDomainNumbers, PlatformMetric, PlatformSummary};

use super::score::{DomainScore, PlatformScore};

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_platform(conclusion: Conclusion, found: &PlatformScore) -> PlatformSummary {
    PlatformSummary {
        conclusion,
        score: found.score.map(Into::into),
        of_domains: found.counted().map(|domain| domain.name.clone()).collect(),
        domains: found.domains.iter().map(domain).collect(),
    }
}

fn domain(one: &DomainScore) -> PlatformDomainNumbers {
    let metrics = one.metrics.iter().map(|metric| PlatformMetric {
        name: metric.name.clone(),
        better: metric.better,
        ratio: metric.ratio,
    });
    PlatformDomainNumbers {
        name: one.name.clone(),
        weight: one.weight,
        ratio: one.ratio.map(Into::into),
        metrics: metrics.collect(),
        sentences: one.sentences.clone(),
        failures: one.failures.clone(),
        unavailable: one.unavailable.clone(),
    }
}
