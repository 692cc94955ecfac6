//! One platform in several domains: the plan of the study that runs other studies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sides_plan::SidesPlan;
use crate::workload::Sample;

/// A run of another study, which a domain is measured by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformRun {
    /// Its name within the domain, and that of its folder.
    pub name: String,
    /// What is measured: the command line behind `virtbench`, without where and the run folder.
    pub words: Vec<String>,
    /// Where: the rest of the command line, such as what executes guests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<String>,
}

impl PlatformRun {
    /// The whole command line behind `virtbench`, without the run folder.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        self.words.iter().chain(&self.place).cloned().collect()
    }

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
    /// Whether its figures have no counterpart natively, such as how many desktops fit: it has a part in the score only against
    /// another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absolute: bool,
    /// Why it cannot be measured with what was asked for, in words; it has no runs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
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
    /// The two environments that are compared, the base first, instead of this host and VMs; none where these are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// The run that figures are compared with, instead of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<PlatformReference>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl PlatformPlan {
    /// What is compared, such as `VMs`.
    #[must_use]
    pub fn subject(&self) -> &str {
        match (&self.reference, self.environments.as_slice()) {
            (Some(_), _) => "this platform",
            (None, [_, subject]) => subject,
            _ => "VMs",
        }
    }

    /// What it is compared with, such as `this host`.
    #[must_use]
    pub fn base(&self) -> &str {
        match (&self.reference, self.environments.as_slice()) {
            (Some(reference), _) => &reference.run,
            (None, [base, _]) => base,
            _ => "this host",
        }
    }

    /// Whether a domain's figures have something that they can be compared with.
    #[must_use]
    pub fn compares(&self, domain: &PlatformDomain) -> bool {
        self.reference.is_some() || !domain.absolute
    }

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

/// Figures of another run of a platform, as they are divided by. They are copied, so that a run folder is whole by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformReference {
    /// Its run folder, as it was named.
    pub run: String,
    /// Its host, in words.
    pub host: String,
    /// What executed the instructions of its guests: `kvm`, `tcg` or `uml`; absent where no guest was measured.
    pub accelerator: Option<String>,
    /// By domain the figures of its guests, each the mean over its repetitions.
    pub domains: BTreeMap<String, Vec<Sample>>,
}
