//! A mean with how well it is known, as commands print it.

use serde::Serialize;
use virtbench_model::{Estimate, OverExperiments};

/// A mean with its interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Value {
    /// The mean.
    pub mean: f64,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The least experiment, where experiments are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greatest: Option<f64>,
}

impl From<OverExperiments> for Value {
    fn from(over: OverExperiments) -> Self {
        Self { least: Some(over.range.low), greatest: Some(over.range.high), ..over.estimate.into() }
    }
}

impl From<Estimate> for Value {
    fn from(estimate: Estimate) -> Self {
        let span = estimate.span();
        Self {
            mean: estimate.mean,
            low: span.map(|span| span.low),
            high: span.map(|span| span.high),
            least: None,
            greatest: None,
        }
    }
}

impl Value {
    /// As text with its interval.
    pub fn cell(self, unit: &str) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{:.1} {unit} ({low:.1} to {high:.1})", self.mean),
            _ => format!("{:.1} {unit}", self.mean),
        }
    }
}
