//! One number with its name, unit and direction.

use serde::{Deserialize, Serialize};

use crate::workload::Better;

/// One number that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was measured.
    pub name: String,
    /// Its unit: `B/s`, `1/s`, `ns`, `%`, or another one.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// How much it was.
    pub value: f64,
}

impl Sample {
    /// A number in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self { name: name.into(), unit: unit.to_owned(), better, value }
    }
}
