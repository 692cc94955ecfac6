//! One platform in several domains: what the runs of a domain come to, and the score over all of them.
//!
//! [Platform 2014] (section VI) ends with "a composite score that combines outputs of each benchmark". Here a domain's figure is the
//! geometric mean of its ratios to this host itself, each turned so that more is better, and the score is the weighted geometric mean of
//! the domains. A domain that was not measured takes no part, and the score says of how many domains it is: scores of other numbers of
//! domains are other scores.

mod advice;
mod compared;
mod domain;
mod insights;
mod observed;
mod ratio;
mod reference;
mod score;
mod summary;

pub use advice::{Advice, advice};
pub use compared::{Moved, MovedFigure, PlatformRunOf, PlatformsCompared, compare_platforms};
pub use domain::{Ratios, samples_of_domain};
pub use insights::{Evidence, Finding, Insight, Outcome, insights};
pub use observed::{disks_of_run, times_of_run};
pub use reference::reference_of;
pub use score::{DomainScore, MetricScore, PlatformScore, score_platform};
pub use summary::summarise_platform;
