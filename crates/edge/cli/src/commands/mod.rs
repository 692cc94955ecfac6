//! One file for each command.

pub mod analyse;
#[cfg(feature = "full")]
pub mod appliance;
pub mod compare;
pub mod doctor;
#[cfg(feature = "full")]
mod driver;
#[cfg(feature = "full")]
pub mod fence;
pub mod grid;
#[cfg(feature = "full")]
pub mod history;
pub mod load;
pub mod man;
#[cfg(feature = "full")]
pub mod oltp;
#[cfg(feature = "full")]
pub mod papers;
#[cfg(feature = "full")]
pub mod predict;
#[cfg(feature = "full")]
pub mod profile;
pub mod regression;
pub mod report;
pub mod run;
pub mod saturate;
pub mod study;
pub mod study_runs;
pub mod surface;
#[cfg(feature = "full")]
pub mod sweep;
#[cfg(feature = "full")]
pub mod users;
pub mod workload;
