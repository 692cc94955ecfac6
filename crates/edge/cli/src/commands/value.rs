//! A mean with how well it is known, as commands print it.

use serde::Serialize;
use virtbench_model::{Estimate, OverExperiments};
use virtbench_record::Ranged;

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

impl From<Value> for Ranged {
    fn from(value: Value) -> Self {
        let Value { mean, low, high, least, greatest } = value;
        Self { mean, low, high, least, greatest }
    }
}

impl From<Ranged> for Value {
    fn from(ranged: Ranged) -> Self {
        let Ranged { mean, low, high, least, greatest } = ranged;
        Self { mean, low, high, least, greatest }
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

/// With one digit behind the point, whole from 100 on.
fn percent(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

impl Value {
    /// As percent, with interval and range in a few characters: `6.8 (0.0 to 21.7; 0.1 to 11.4)`.
    pub fn percent(&self) -> String {
        let span = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
        let spans: Vec<String> = [self.low.zip(self.high), self.least.zip(self.greatest)]
            .into_iter()
            .flatten()
            .map(span)
            .collect();
        match (self.low, spans.is_empty()) {
            (Some(_), false) => format!("{} ({})", percent(self.mean), spans.join("; ")),
            _ => percent(self.mean),
        }
    }
}
