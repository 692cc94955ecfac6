//! One platform in several domains: what the runs of a domain come to, and the score over all of them.
//!
//! [Platform 2014] (section VI) ends with "a composite score that combines outputs of each benchmark". Here a domain's figure is the
//! geometric mean of its ratios to this host itself, each turned so that more is better, and the score is the weighted geometric mean of
//! the domains. A domain that was not measured takes no part, and the score says of how many domains it is: scores of other numbers of
//! domains are other scores.

mod compared;
mod domain;
mod insights;
mod score;

pub use compared::{Advice, Moved, MovedFigure, PlatformRunOf, PlatformsCompared, advice, compare_platforms};
pub use domain::{Ratios, samples_of_domain};
pub use insights::{Evidence, Finding, Insight, Outcome, disks_of_run, insights, times_of_run};
pub use score::{DomainScore, MetricScore, PlatformScore, reference_of, score_platform, summarise_platform};
