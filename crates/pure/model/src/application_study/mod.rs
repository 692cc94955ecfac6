//! An appliance under a client of the user's on several sides, alone and beside neighbours: what it comes to.

mod analysis;
mod summary;

pub use analysis::{ApplicationSideFound, ApplicationStudyAnalysis, MetricFound, analyse_application_study};
pub use summary::summarise_application_study;
