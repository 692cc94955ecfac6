//! What a program reads of a study of a platform.

use serde::{Deserialize, Serialize};

use crate::summary::{Conclusion, Estimated};
use crate::workload::Better;

/// One figure of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformMetric {
    /// What was measured.
    pub name: String,
    /// Which direction of the figure is better.
    pub better: Better,
    /// How many times this host's it is, turned so that more is better.
    pub ratio: f64,
}

/// One domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformDomainNumbers {
    /// Its name.
    pub name: String,
    /// How much it counts in the score.
    pub weight: f64,
    /// The geometric mean of its figures; null where it was not measured.
    pub ratio: Option<Estimated>,
    /// Its figures.
    pub metrics: Vec<PlatformMetric>,
    /// What its runs come to, in sentences.
    pub sentences: Vec<String>,
    /// Repetitions that failed, and why.
    pub failures: Vec<String>,
    /// What this host lacks for it; null where it has it.
    pub unavailable: Option<String>,
}

/// The figures of a study of a platform, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformSummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The weighted geometric mean over the domains that were measured; null where none was.
    pub score: Option<Estimated>,
    /// Names of the domains that have a part in the score. Scores of other domains are other scores.
    pub of_domains: Vec<String>,
    /// Every domain, in the order of the plan.
    pub domains: Vec<PlatformDomainNumbers>,
}
