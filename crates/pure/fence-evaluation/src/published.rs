//! What [VirtualFence 2013] says, as data: `data/published.json`. The paper's figures are pictures; only what its
//! text says in numbers is here.

use serde::{Deserialize, Serialize};

use crate::metric::{Machine, Metric, PaperFigure};
use virtbench_fence_sim::client::Personality;

const DATA: &str = include_str!("../data/published.json");

/// One published value or bound, with the band inside which a measured value holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Of which figure.
    pub figure: PaperFigure,
    /// Of which workload.
    pub workload: Personality,
    /// Of which system, by its label.
    pub system: String,
    /// Of which machines.
    pub machine: Machine,
    /// Of which metric.
    pub metric: Metric,
    /// The value, where the text has one rather than a bound or a range.
    #[serde(default)]
    pub published: Option<f64>,
    /// Lower end of the band; of a deviation that is at most so much, zero.
    pub at_least: f64,
    /// Upper end of the band.
    pub at_most: f64,
    /// What the paper says, and where.
    pub quote: String,
}

impl Published {
    /// By how much a value lies outside the band: below zero under it, above zero over it.
    #[must_use]
    pub fn outside(&self, value: f64) -> f64 {
        (value - self.at_least).min(0.0) + (value - self.at_most).max(0.0)
    }

    /// The value or the band in a few characters.
    #[must_use]
    pub fn brief(&self) -> String {
        match self.published {
            Some(value) => format!("{value}"),
            None if self.at_least <= 0.0 => format!("<= {}", self.at_most),
            None => format!("{} to {}", self.at_least, self.at_most),
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
    fn every_band_has_two_ends_and_its_value_between_them() {
        let all = published().unwrap();
        assert!(all.len() > 40);
        for one in &all {
            assert!(0.0 <= one.at_least && one.at_least < one.at_most && one.at_most.is_finite(), "{one:?}");
            if let Some(value) = one.published {
                assert!(one.at_least >= value * 0.5 && one.at_most <= value * 1.5, "{one:?}");
                assert!(one.at_least < value && value < one.at_most, "{one:?}");
            }
            assert!(one.outside(one.at_least - 1.0) < 0.0 && one.outside(one.at_most + 1.0) > 0.0);
        }
        let factors = all.iter().filter(|one| one.metric == Metric::Intensity);
        assert_eq!(factors.filter_map(|one| one.published).collect::<Vec<_>>(), [3.3, 2.7]);
    }

    /// A value that no case yields would be neither held nor missed.
    #[test]
    fn each_is_read_off_a_case() {
        for one in published().unwrap() {
            let bars = one.figure.bars(&[one.workload]);
            let bar = bars.iter().find(|bar| bar.label == one.system).unwrap_or_else(|| panic!("{one:?}"));
            assert!(bar.reads().contains(&(one.machine, one.metric)), "{one:?}");
        }
    }
}
