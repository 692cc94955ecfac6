//! Another run of a platform, which takes the place of what is native.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::Sample;

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
