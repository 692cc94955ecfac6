//! What a rule looks at, and what it says.

use virtbench_record::{
    HostFacts, HostTuning, ObservedDisk, PlatformObserved, SamplesMeasured, SamplesRecord,
};

use crate::platform::observed::all_disks;
use crate::platform::score::PlatformScore;

/// A number that speaks for a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What was seen.
    pub what: String,
    /// How much it was.
    pub value: f64,
    /// Its unit, such as `%` or `MHz`.
    pub unit: &'static str,
}

impl Evidence {
    pub(super) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit }
    }
}

/// Something that costs, and is seen here.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was seen, with the numbers.
    pub evidence: Vec<Evidence>,
    /// What it means.
    pub sentence: String,
    /// What to change first.
    pub change: String,
    /// How many times as much was measured with that change; nothing where it was not tried.
    pub gain: Option<f64>,
}

/// What a rule has come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is seen here.
    Fires(Finding),
    /// It was looked for, and is not here.
    Silent,
    /// It could not be looked for, and why.
    Unavailable(String),
}

impl Outcome {
    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }
}

/// A run of a platform, as rules see it.
pub(super) struct Seen<'a> {
    pub(super) host: &'a HostFacts,
    pub(super) records: &'a [SamplesRecord],
    pub(super) found: &'a PlatformScore,
}

impl Seen<'_> {
    pub(super) fn measured(&self) -> impl Iterator<Item = &SamplesMeasured> {
        self.records.iter().filter_map(SamplesRecord::measured)
    }

    pub(super) fn observed(&self) -> impl Iterator<Item = &PlatformObserved> {
        self.measured().filter_map(|measured| measured.observed.as_ref())
    }

    pub(super) fn tuning(&self) -> Option<&HostTuning> {
        self.host.tuning.as_ref()
    }

    /// The figure of a domain, if it has one.
    pub(super) fn ratio(&self, domain: &str) -> Option<f64> {
        Some(self.found.domains.iter().find(|one| one.name == domain)?.ratio?.mean)
    }

    /// Each disk of a guest once.
    pub(super) fn disks(&self) -> Vec<ObservedDisk> {
        all_disks(self.records)
    }
}
