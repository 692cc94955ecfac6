//! One platform in several domains: the plan of the study that runs other studies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sides_plan::SidesPlan;

/// A run of another study, which a domain is measured by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformRun {
    /// Its name within the domain, and that of its folder.
    pub name: String,
    /// The command line behind `virtbench`, without the run folder.
    pub words: Vec<String>,
}

impl PlatformRun {
    /// The folder of this run in a repetition, counted from 0, within that of the platform's run.
    #[must_use]
    pub fn folder(&self, domain: &str, repetition: u32) -> String {
        format!("{domain}/{}/{}", repetition + 1, self.name)
    }
}

/// What is measured of one domain, such as storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformDomain {
    /// Its name.
    pub name: String,
    /// One run, which compares VMs with this host itself; or two of one kind, of which the second is compared with the first.
    pub runs: Vec<PlatformRun>,
    /// About how long they take together, in nanoseconds.
    pub takes_ns: u64,
}

/// What a study of a platform set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformPlan {
    /// Name of the profile: `minute`, `quick` or `full`.
    pub profile: String,
    /// The domains, in the order in which they are measured.
    pub domains: Vec<PlatformDomain>,
    /// How often each is measured, each time between machines that are started for it.
    pub repetitions: u32,
    /// How much a domain counts in the score, by its name; 1 where it is not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// What executes guests' instructions: `auto`, `kvm`, `tcg` or `uml`.
    pub accelerator: String,
    /// Seed of every random choice.
    pub seed: u64,
}

impl PlatformPlan {
    /// How much a domain counts in the score.
    #[must_use]
    pub fn weight(&self, domain: &str) -> f64 {
        self.weights.get(domain).copied().unwrap_or(1.0)
    }

    /// As a study of sides: a domain is one.
    pub(crate) fn sides_plan(&self) -> SidesPlan {
        let longest = self.domains.iter().map(|domain| domain.takes_ns).sum::<u64>();
        SidesPlan {
            title: "What virtualization costs on this platform",
            sides: self.domains.iter().map(|domain| domain.name.clone()).collect(),
            repetitions: self.repetitions,
            takes_ns: longest / (self.domains.len().max(1) as u64),
            seed: self.seed,
            headlines: &[],
        }
    }
}
