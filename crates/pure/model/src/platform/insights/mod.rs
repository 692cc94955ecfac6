//! What slows a platform down, looked for by rule. A rule shows its evidence, or stays silent, or says why it could not look.

mod clock;
mod coalescing;
mod frequency;
mod huge_pages;
mod merging;
mod numa;
mod queue_depth;
mod rule;
mod steal;
mod write_cache;

#[cfg(test)]
mod insights_tests;

use virtbench_record::{Provenance, SamplesRecord};

pub use rule::{Evidence, Finding, Outcome};

use self::rule::Seen;
use super::score::PlatformScore;

/// A rule and what it has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// What it looks for.
    pub looks_for: &'static str,
    /// What it has come to.
    pub outcome: Outcome,
}

type Rule = fn(&Seen<'_>) -> Outcome;

/// Every rule, by what it looks for.
const RULES: [(&str, Rule); 9] = [
    ("queue depth of an adapter", queue_depth::queue_depth),
    ("write-through against write-back", write_cache::write_cache),
    ("interrupts that are coalesced", coalescing::coalescing),
    ("imbalance between NUMA nodes", numa::numa),
    ("a clock that costs", clock::clock),
    ("small pages", huge_pages::huge_pages),
    ("merging of equal pages", merging::merging),
    ("steal of an outer hypervisor", steal::steal),
    ("changes of the processors' frequency", frequency::frequency),
];

/// What each rule has come to.
#[must_use]
pub fn insights(provenance: &Provenance, records: &[SamplesRecord], found: &PlatformScore) -> Vec<Insight> {
    let seen = Seen { host: &provenance.host, records, found };
    RULES.iter().map(|(looks_for, rule)| Insight { looks_for, outcome: rule(&seen) }).collect()
}
