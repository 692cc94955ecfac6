//! The study of an application: an appliance under a client of the user's, natively and in VMs, alone and beside neighbours
//! ([Platform 2014], section III.A; [VirtualFence 2013], section 4).

mod client;
mod client_words;
mod data_disks;
mod experiment;
mod file;
mod load;
mod members;
mod metrics;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod sides;
mod tiers;
mod together;

pub(crate) use client::{Client, explained};
pub(crate) use client_words::client_words;
pub(crate) use data_disks::{DataDisks, DataPlace};
pub use experiment::ApplicationOptions;
pub use file::{ApplicationFile, ApplicationFileError, SideKind, TierFile};
pub use load::ApplianceLoad;
pub use members::LoadedAppliances;
pub use run::{ApplicationStudy, run_application};
pub use sides::{ApplicationFailure, ApplicationSides};
