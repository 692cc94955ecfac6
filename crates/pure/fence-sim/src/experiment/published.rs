//! What paper 5 says, as data: `data/published.json`. The paper's figures are pictures; only what its
//! text says in numbers is here.

use serde::{Deserialize, Serialize};

use super::figures::{Figure, Machine, Metric};
use crate::client::Personality;

const DATA: &str = include_str!("../../data/published.json");

/// One published value or bound, with the band inside which a measured value holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Of which figure.
    pub figure: Figure,
    /// Of which workload.
    pub workload: Personality,
    /// Of which system, by its label.
    pub system: String,
    /// Of which machines.
    pub machine: Machine,
    /// Of which metric.
    pub metric: Metric,
    /// The value, where the text has one rather than a bound.
    #[serde(default)]
    pub published: Option<f64>,
    /// Lower end of the band.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Upper end of the band.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// What the paper says, and where.
    pub quote: String,
}

impl Published {
    /// By how much a value lies outside the band: below zero under it, above zero over it.
    #[must_use]
    pub fn outside(&self, value: f64) -> f64 {
        let under = self.at_least.map_or(0.0, |least| (value - least).min(0.0));
        let over = self.at_most.map_or(0.0, |most| (value - most).max(0.0));
        under + over
    }

    /// The value or the band in a few characters.
    #[must_use]
    pub fn brief(&self) -> String {
        match (self.published, self.at_least, self.at_most) {
            (Some(value), _, _) => format!("{value}"),
            (None, Some(least), Some(most)) => format!("{least} to {most}"),
            (None, Some(least), None) => format!(">= {least}"),
            (None, None, Some(most)) => format!("<= {most}"),
            (None, None, None) => String::new(),
        }
    }
}

/// Everything published.
///
/// # Errors
/// The data file is damaged, which a test finds first.
pub fn published() -> Result<Vec<Published>, serde_json::Error> {
    serde_json::from_str(DATA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_can_be_read_and_every_band_has_an_end() {
        let all = published().unwrap();
        assert!(all.len() > 10);
        for one in &all {
            assert!(one.at_least.is_some() || one.at_most.is_some(), "{one:?}");
            if let (Some(least), Some(most)) = (one.at_least, one.at_most) {
                assert!(least < most, "{one:?}");
            }
            if let Some(value) = one.published {
                assert!(one.outside(value).abs() < 1e-12, "{one:?}");
            }
        }
    }
}
